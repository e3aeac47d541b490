"""What all flavours of trace.json begin with, and how they say what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from npuscope.trace.timeline import Loss, Timeline

SIMULATOR, SINGLE = 2, 1
"""Values of schemaVersion: traces whose lanes are put in order, and the others."""


def head(timeline: Timeline, version: int, losses: Iterable[Loss]) -> dict[str, str | int | bool]:
    """The keys before the events. `profilingType` comes first (V10); where the times come from
    is said too, and whether any of the `losses` is one of time."""
    return {
        "profilingType": "op",
        "displayTimeUnit": "ns",
        "schemaVersion": version,
        "source": timeline.source.word,
        "partial": any(loss.partial for loss in losses),
    }
