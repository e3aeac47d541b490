"""The counters of one launch, core by core."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.busy import Busy
from npuscope.profiler.counters.event import Event
from npuscope.profiler.counters.events_310p import EVENTS_310P
from npuscope.profiler.counters.events_a2 import EVENTS_A2
from npuscope.profiler.counters.events_a5 import EVENTS_A5
from npuscope.profiler.counters.reader import Reader
from npuscope.trace.schema import CoreType
from npuscope.trace.timeline import Timeline

COLUMNS = {"2201": "A2", "3510": "A5", "2002": "310P"}
"""The set of events and of table columns by NPU architecture (opprof.md 0.2)."""
EVENTS: dict[str, tuple[Event, ...]] = {"A2": EVENTS_A2, "A5": EVENTS_A5, "310P": EVENTS_310P}


@dataclass(frozen=True, slots=True)
class Counters:
    """`values` maps an event number to its count on each core, (cores,) float64, NaN where the core has no such
    counter or the timeline does not tell; `paths` maps a way between two memories, ``GM_L0A``, to the bytes that took
    it on each core; `total_cycles` are those of each core; `columns` is the set of columns: "A2", "A5" or "310P"."""

    columns: str
    total_cycles: np.ndarray
    values: dict[int, np.ndarray] = field(default_factory=dict)
    paths: dict[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, event: int) -> np.ndarray:
        """The counts of an event; all NaN where the set does not have it."""
        found = self.values.get(event)
        return np.full(self.total_cycles.shape, np.nan) if found is None else found


def counters_of(chip: Chip) -> tuple[Event, ...]:
    """The events that a chip counts."""
    return EVENTS[columns_of(chip)]


def columns_of(chip: Chip) -> str:
    """The set of columns of a chip: "A2" (A3 too), "A5" or "310P"."""
    return COLUMNS.get(chip.arch, "310P")


def count(timeline: Timeline, chip: Chip, found: Busy | None = None) -> Counters:
    """Read the counters off a timeline; `found` is how busy its pipes were, where that is known already."""
    columns = columns_of(chip)
    reader = Reader(timeline, columns, found)
    aic = np.array([core.type is CoreType.AIC for core in timeline.launch.cores], bool)
    values = {}
    for event in EVENTS[columns]:
        counts = np.asarray(event.read(reader), np.float64)
        if chip.split and event.core is not None:
            counts = np.where(aic == (event.core is CoreType.AIC), counts, np.nan)
        values[event.number] = counts
    return Counters(columns, reader.total_cycles, values, reader.flows.path_bytes())
