"""How busy the pipes of each core were, as their counters tell it (opprof.md 2.3, PipeUtilization; 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.blocks import core_kinds
from npuscope.profiler.charts.traffic import ways
from npuscope.profiler.counters import Counters
from npuscope.trace.timeline import Timeline

Events = tuple[int | None, int, int | None]
"""The counters of a pipe's instructions, busy cycles and waiting cycles; None where there is none."""

CUBE_PIPES: dict[str, dict[str, Events]] = {
    "A2": {
        "Cube": (3, 10, 88), "Scalar": (None, 9, 87), "MTE1": (4, 770, 90), "MTE2": (5, 12, 91), "MTE3": (6, 13, 92),
        "FixPipe": (526, 771, None),
    },
    "A5": {
        "Cube": (768, 810, 11), "Scalar": (0, 1, 10), "MTE1": (1792, 1794, 13), "MTE2": (512, 514, 14),
        "MTE3": (513, 515, 15), "FixPipe": (1813, 1812, 36),
    },
    "310P": {
        "Cube": (3, 10, 88), "Vector": (1, 8, 89), "Scalar": (None, 9, 87), "MTE1": (4, 11, 90), "MTE2": (5, 12, 91),
        "MTE3": (6, 13, 92),
    },
}  # fmt: skip
VECTOR_PIPES: dict[str, dict[str, Events]] = {
    "A2": {"Vector": (1, 8, 89), "Scalar": (None, 9, 87), "MTE2": (5, 12, 91), "MTE3": (6, 13, 92)},
    "A5": {"Vector": (None, 1281, 12), "Scalar": (0, 1, 10), "MTE2": (512, 514, 14), "MTE3": (513, 515, 15)},
}
"""The pipes of cores with a cube, and of vector cores."""


@dataclass(frozen=True, slots=True)
class PipeFigures:
    """One pipe of one core: `instructions`, `busy` and `waiting` cycles, and `share`, busy out of all cycles, 0..1.
    None is not known."""

    name: str
    instructions: float | None
    busy: float | None
    waiting: float | None
    share: float | None


def pipes_of(name: str, columns: str) -> dict[str, Events]:
    """The pipes of a core, ``cube0``, ``vector1`` or ``AiCore``, and their counters."""
    return VECTOR_PIPES[columns] if name.startswith("vector") else CUBE_PIPES[columns]


def pipe_figures(counters: Counters, name: str, core: int, cycles: float) -> list[PipeFigures]:
    """The pipes of core number `core`, whose cycles are `cycles`."""

    def read(number: int | None) -> float | None:
        value = np.nan if number is None else float(counters[number][core])
        return None if np.isnan(value) else value

    found = []
    for pipe, (instructions, busy, waiting) in pipes_of(name, counters.columns).items():
        worked = read(busy)
        share = worked / cycles if worked is not None and cycles > 0 else None
        found.append(PipeFigures(pipe, read(instructions), worked, read(waiting), share))
    return found


def busiest(timeline: Timeline, chip: Chip, counters: Counters) -> tuple[str, float] | None:
    """The pipe that is busy for the greatest share of its cores' cycles, 0..1, all cores of a type together; None
    where no pipe is known."""
    cycles = ways(timeline, chip, counters).cycles
    sums: dict[tuple[str, str], list[float]] = {}
    for index, (_, name) in enumerate(core_kinds(timeline.launch, chip)):
        for pipe in pipe_figures(counters, name, index, float(cycles[index])):
            if pipe.busy is not None and cycles[index] > 0:
                both = sums.setdefault((name[:4], pipe.name), [0.0, 0.0])
                both[0], both[1] = both[0] + pipe.busy, both[1] + float(cycles[index])
    if not sums:
        return None
    (_, name), (busy, total) = max(sums.items(), key=lambda item: item[1][0] / item[1][1])
    return name, busy / total
