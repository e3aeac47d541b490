"""What all flavours of trace.json begin with, and how they say what is missing."""

from __future__ import annotations

from npuscope.trace.timeline import Timeline

SIMULATOR, SINGLE = 2, 1
"""Values of schemaVersion: traces whose lanes are put in order, and the others."""


def head(timeline: Timeline, version: int, partial: bool = False) -> dict[str, str | int | bool]:
    """The keys before the events. `profilingType` comes first (V10); where the times come from is said too."""
    return {
        "profilingType": "op",
        "displayTimeUnit": "ns",
        "schemaVersion": version,
        "source": timeline.source.word,
        "partial": timeline.partial or partial,
    }
