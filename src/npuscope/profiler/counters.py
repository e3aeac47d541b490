"""Virtual counters: what the vendor's hardware counters would read, with their event numbers (opprof.md 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Counters:
    """`values` maps an event number to its count on each core, (cores,) float64, NaN where the core has no such
    counter; `total_cycles` are those of each core; `columns` is the set of columns: "A2", "A5" or "310P"."""

    columns: str
    total_cycles: np.ndarray
    values: dict[int, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, event: int) -> np.ndarray:
        return self.values[event]


def count(timeline: Timeline, chip: Chip) -> Counters:
    """Read the counters off a timeline."""
    columns = {"2201": "A2", "3510": "A5"}.get(chip.arch, "310P")
    return Counters(columns, (timeline.core("end") - timeline.core("start")).astype(np.float64))
