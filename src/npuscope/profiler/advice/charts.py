"""What the charts themselves conclude."""

from __future__ import annotations

from collections.abc import Iterator

from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case

REMEDIES = {
    "compute bound": "The unit that computes is near its roof: less work, or a smaller element type.",
    "memory bound": "The memory named is near its roof: reuse what was loaded, or move fewer bytes.",
    "latency bound:pipeline caused": "No pipe is busy most of the time: overlap them (more buffers, fewer barriers).",
    "latency bound:memory caused": "A copying pipe is busy but slow: larger, aligned copies.",
    "latency bound:compute caused": "A computing pipe is busy but slow: longer instructions, no bank conflicts.",
}


def roofline(case: Case) -> Iterator[Advice]:
    """The sentence of the rooflines (opprof.md 3.2)."""
    chart = case.profile.roofline
    if chart.advice:
        yield Advice("ROOFLINE", chart.advice, remedy=REMEDIES.get(chart.advice, ""))


def occupancy(case: Case) -> Iterator[Advice]:
    """The sentences of the occupancy chart (opprof.md 3.8)."""
    for text in case.profile.occupancy.advice:
        yield Advice("OCCUPANCY", text, remedy="Spread the work so that all cores of a kind do the same.")
