"""The load of each unit: bars of the pipes, and a table of times, instructions, bytes and operand types
(opprof.md 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.blocks import core_kinds
from npuscope.profiler.charts.pipes import PipeFigures, pipe_figures
from npuscope.profiler.charts.traffic import ways
from npuscope.profiler.counters import Counters
from npuscope.profiler.element_types import operand_name
from npuscope.trace.timeline import Lane, Timeline
from npuscope.trace.values import among


class Unit(IntEnum):
    """What a figure counts, with the viewer's numbers."""

    MICROSECONDS = 0
    INSTRUCTIONS = 1
    BYTES = 2
    PERCENT = 3

    @property
    def word(self) -> str:
        """For people."""
        return ("us", "", "B", "%")[self]


@dataclass(frozen=True, slots=True)
class Load:
    """One figure of one core: `core` is ``cube0``, ``vector0``, ``vector1`` or ``AiCore``. `value` is None where not
    known; `origin` is what it was made from (cycles, for a share or a time)."""

    block: int
    core: str
    name: str
    unit: Unit
    value: float | None
    origin: float | None


@dataclass(frozen=True, slots=True)
class ComputeLoad:
    """`bars` are shares of each core's cycles by pipe, `table` the figures behind them; blocks ascend in both."""

    bars: tuple[Load, ...]
    table: tuple[Load, ...]


def compute_load(timeline: Timeline, chip: Chip, counters: Counters) -> ComputeLoad:
    """The load of each core of a launch, blocks ascending."""
    cycles = ways(timeline, chip, counters).cycles
    operands, moved = _operands(timeline), _bytes(timeline)
    bars: list[Load] = []
    table: list[Load] = []
    kinds = sorted((kind, index) for index, kind in enumerate(core_kinds(timeline.launch, chip)))
    for (block, name), index in kinds:
        pipes = pipe_figures(counters, name, index, float(cycles[index]))
        bars.extend(_share(block, name, pipe) for pipe in pipes)
        table.append(_time(block, name, "Core", float(counters.total_cycles[index]), chip))
        table.extend(_time(block, name, pipe.name, pipe.busy, chip) for pipe in pipes)
        table.extend(
            Load(block, name, f"{pipe.name} Instructions", Unit.INSTRUCTIONS, pipe.instructions, pipe.instructions)
            for pipe in pipes
            if pipe.instructions is not None
        )
        table.append(Load(block, name, "Process Bytes", Unit.BYTES, moved[index], moved[index]))
        table.extend(Load(block, name, text, Unit.INSTRUCTIONS, value, value) for text, value in operands[index])
    return ComputeLoad(tuple(bars), tuple(table))


def _share(block: int, name: str, pipe: PipeFigures) -> Load:
    return Load(block, name, pipe.name, Unit.PERCENT, None if pipe.share is None else 100 * pipe.share, pipe.busy)


def _time(block: int, name: str, pipe: str, cycles: float | None, chip: Chip) -> Load:
    microseconds = None if cycles is None else cycles / chip.frequency_mhz
    return Load(block, name, f"{pipe} Duration", Unit.MICROSECONDS, microseconds, cycles)


def _bytes(timeline: Timeline) -> list[float | None]:
    """Bytes that each core moved to and from GM, as its instructions tell it."""
    known = timeline.slice("bytes") >= 0
    core, cores = timeline.slice("core")[known], len(timeline.launch.cores)
    count = np.bincount(core, minlength=cores)
    total = np.bincount(core, timeline.slice("bytes")[known], minlength=cores)
    return [float(value) if number else None for number, value in zip(count, total, strict=True)]


def _operands(timeline: Timeline) -> list[list[tuple[str, float]]]:
    """For each core, what it computed by the type of the operands: instructions and operations. An element of a vector
    instruction is one operation, a multiply-accumulate of a cube two."""
    cores = len(timeline.launch.cores)
    shape = (len(timeline.steps), cores)
    computes = among(timeline.slice("lane"), (Lane.CUBE, Lane.VECTOR)) & (timeline.slice("work") > 0)
    place = (timeline.slice("step") * cores + timeline.slice("core"))[computes]
    ran = np.bincount(place, minlength=shape[0] * cores).reshape(shape)
    work = np.bincount(place, timeline.slice("work")[computes], minlength=shape[0] * cores).reshape(shape)
    sums: dict[tuple[str, str], np.ndarray] = {}
    for number in np.flatnonzero(ran.any(1)).tolist():
        step = timeline.steps[number]
        if not step.dtype:
            continue
        unit, each = ("Cube", 2) if step.lane is Lane.CUBE else ("Vector", 1)
        key = (unit, operand_name(step.dtype))
        row = np.stack([ran[number], each * work[number]])
        sums[key] = sums[key] + row if key in sums else row
    found: list[list[tuple[str, float]]] = [[] for _ in range(cores)]
    for (unit, dtype), (instructions, operations) in sorted(sums.items()):
        for core in np.flatnonzero(instructions).tolist():
            found[core].append((f"{unit} {dtype} Instructions", float(instructions[core])))
            found[core].append((f"{unit} {dtype} Ops", float(operations[core])))
    return found
