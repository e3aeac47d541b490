"""A slice over the whole launch that says what is missing (opprof.md D9)."""

from __future__ import annotations

from npuscope.profiler.cores import core_names
from npuscope.profiler.writers.event_file import EventFile
from npuscope.trace.timeline import Loss, Timeline

NOTICE = "NOTICE"
"""The process of the banners."""


def banner(events: EventFile, timeline: Timeline, number: int, loss: Loss) -> None:
    """Write the banner of a loss that is more than information; `number` counts them."""
    if loss.level == "info":
        return
    where = core_names(timeline.launch)[loss.core] if loss.core >= 0 else "all cores"
    arguments = {"core": where, "count": loss.count, "total": loss.total, "kind": loss.kind}
    events.event(
        name=loss.text,
        cname="terrible",
        ph="X",
        ts=0.0,
        dur=timeline.microseconds,
        pid=NOTICE,
        tid=f"{number + 1}",
        args=arguments,
    )
