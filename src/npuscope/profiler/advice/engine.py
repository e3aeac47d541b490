"""All rules over one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from npuscope.profiler.advice import charts, compute, copies, cores, overlap
from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case

if TYPE_CHECKING:
    from npuscope.profiler.profile import Profile

Rule = Callable[[Case], Iterable[Advice]]
"""A rule looks at a launch and gives nothing where all is well."""

RULES: tuple[Rule, ...] = (
    compute.frequency, compute.usage, compute.scalar_bound, compute.bank_conflicts, compute.instruction_cache,
    compute.short_vectors, copies.bandwidth, copies.unaligned, copies.small, copies.reloads, overlap.no_overlap,
    overlap.waits_for_buffers, overlap.barriers, cores.tail_wave, cores.uneven, cores.launch_overhead, charts.roofline,
    charts.occupancy,
)  # fmt: skip
"""The rules of npuscope."""


def advise(profile: Profile, more: Iterable[Rule] = ()) -> list[Advice]:
    """What the rules say, and the rules of `more`: the greatest gain first, those without one last."""
    case = Case(profile)
    if not profile.timeline.slices.shape[1]:
        return []
    found = [advice for rule in (*RULES, *more) for advice in rule(case)]
    return sorted(found, key=lambda advice: -1.0 if advice.gain is None else advice.gain, reverse=True)
