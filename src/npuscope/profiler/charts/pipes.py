"""How busy the pipes of each core were, as their counters tell it (opprof.md 2.3, PipeUtilization)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.blocks import core_kinds
from npuscope.profiler.charts.traffic import event, ways
from npuscope.profiler.counters import Counters
from npuscope.trace.timeline import Timeline

CUBE_PIPES = {
    "A2": {"Cube": 10, "Scalar": 9, "MTE1": 770, "MTE2": 12, "MTE3": 13, "FixPipe": 771},
    "A5": {"Cube": 810, "Scalar": 1, "MTE1": 1794, "MTE2": 514, "MTE3": 515, "FixPipe": 1812},
    "310P": {"Cube": 10, "Scalar": 9, "MTE1": 11, "MTE2": 12, "MTE3": 13, "Vector": 8},
}
VECTOR_PIPES = {
    "A2": {"Vector": 8, "Scalar": 9, "MTE2": 12, "MTE3": 13},
    "A5": {"Vector": 1281, "Scalar": 1, "MTE2": 514, "MTE3": 515},
}
"""The counter of each pipe's busy cycles, on cores with a cube and on vector cores."""


def pipes_of(name: str, columns: str) -> dict[str, int]:
    """The pipes of a core, ``cube0``, ``vector1`` or ``AiCore``, and their counters."""
    return VECTOR_PIPES[columns] if name.startswith("vector") else CUBE_PIPES[columns]


def busiest(timeline: Timeline, chip: Chip, counters: Counters) -> tuple[str, float] | None:
    """The pipe that is busy for the greatest share of its cores' cycles, 0..1, all cores of a type together; None
    where no pipe is known."""
    cycles = ways(timeline, chip, counters).cycles
    busy: dict[tuple[str, str], list[float]] = {}
    for index, (_, name) in enumerate(core_kinds(timeline.launch, chip)):
        for pipe, number in pipes_of(name, counters.columns).items():
            value = event(counters, number)[index]
            if not np.isnan(value) and cycles[index] > 0:
                sums = busy.setdefault((name[:4], pipe), [0.0, 0.0])
                sums[0], sums[1] = sums[0] + value, sums[1] + cycles[index]
    if not busy:
        return None
    (_, pipe), (value, total) = max(busy.items(), key=lambda item: item[1][0] / item[1][1])
    return pipe, float(value / total)
