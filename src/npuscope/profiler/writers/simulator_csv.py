"""The simulator's tables of each core: cycles by source line and by instruction (opprof.md 2.5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.hot_spots import HotSpots, LineSpot
from npuscope.profiler.insight.instruction_api import first_details
from npuscope.profiler.profile import Profile
from npuscope.profiler.table import Cell, Table

CODE_COLUMNS = ("code", "call_count", "cycles", "running_time(us)")
INSTRUCTION_COLUMNS = ("instr", "addr", "pipe", "call_count", "cycles", "running_time(us)", "detail")
QUOTED = ("detail",)
"""Columns that a CSV file puts in quotes whatever is in them."""

INT32 = 2**31 - 1
"""Where the sum of cycles ends (opprof.md 2.5)."""


def simulator_tables(profile: Profile) -> Iterator[tuple[str, Table, Table]]:
    """For each core its name, ``core0.veccore0``, and its tables: by line and by instruction, the most cycles first.
    `cycles` are added up; `running_time(us)` is the time in which at least one of them ran."""
    spots = profile.hot_spots
    details = first_details(profile)
    for core, name in enumerate(core_names(profile.timeline.launch)):
        by_line = tuple(_line(line, core, profile.timeline.mhz) for line in spots.lines if line.executed[core])
        by_step = tuple(_step(profile, spots, number, core, details[number]) for number in _ran(spots, core))
        yield (
            name,
            Table(f"{name}_code_exe", CODE_COLUMNS, tuple(sorted(by_line, key=_most_cycles))),
            Table(f"{name}_instr_exe", INSTRUCTION_COLUMNS, tuple(sorted(by_step, key=_most_steps))),
        )


def _ran(spots: HotSpots, core: int) -> list[int]:
    return [int(number) for number in np.flatnonzero(spots.executed[:, core])]


def _line(line: LineSpot, core: int, mhz: float) -> tuple[Cell, ...]:
    code = f"{line.frame.file}:{line.frame.line}"
    return (code, int(line.executed[core]), _cycles(line.cycles[core]), _time(line.covered[core], mhz))


def _step(profile: Profile, spots: HotSpots, number: int, core: int, detail: str) -> tuple[Cell, ...]:
    step = profile.timeline.steps[number]
    return (
        step.text, hex(step.address), step.lane.name, int(spots.executed[number, core]),
        _cycles(spots.cycles[number, core]), _time(spots.covered[number, core], profile.timeline.mhz), detail,
    )


def _cycles(value: np.int64) -> int:
    return min(max(int(value), 0), INT32)


def _time(cycles: np.int64, mhz: float) -> str:
    """Two decimals, where other tables have six."""
    return f"{int(cycles) / mhz:.2f}"


def _most_cycles(row: tuple[Cell, ...]) -> tuple[int, str]:
    return -int(row[2] or 0), str(row[0])


def _most_steps(row: tuple[Cell, ...]) -> tuple[int, str]:
    return -int(row[4] or 0), str(row[1])
