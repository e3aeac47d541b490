"""The simulator's tables of each core: cycles by source line and by instruction (opprof.md 2.5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.insight.instruction_api import first_details
from npuscope.profiler.profile import Profile
from npuscope.profiler.table import Table

CODE_COLUMNS = ("code", "call_count", "cycles", "running_time(us)")
INSTRUCTION_COLUMNS = ("instr", "addr", "pipe", "call_count", "cycles", "running_time(us)", "detail")
QUOTED = ("detail",)
"""Columns that a CSV file puts in quotes whatever is in them."""

INT32 = 2**31 - 1
"""Where the sum of cycles ends (opprof.md 2.5)."""


def simulator_tables(profile: Profile) -> Iterator[tuple[str, Table, Table]]:
    """For each core its name, ``core0.veccore0``, and its tables: by line and by instruction, the most cycles first.
    `cycles` are added up; `running_time(us)` is the time in which at least one of them ran."""
    spots, mhz = profile.hot_spots, profile.timeline.mhz
    names = [f"{line.frame.file}:{line.frame.line}" for line in spots.lines]
    heads = [(step.text, hex(step.address), step.lane.name) for step in profile.timeline.steps]
    details = first_details(profile)
    for core, name in enumerate(core_names(profile.timeline.launch)):
        by_line = [
            (names[number], int(line.executed[core]), _cycles(line.cycles[core]), _time(line.covered[core], mhz))
            for number, line in enumerate(spots.lines)
            if line.executed[core]
        ]
        ran = np.flatnonzero(spots.executed[:, core])
        columns = (table[ran, core].tolist() for table in (spots.executed, spots.cycles, spots.covered))
        by_step = [
            (*heads[number], times, _cycles(cycles), _time(covered, mhz), details[number])
            for number, times, cycles, covered in zip(ran.tolist(), *columns, strict=True)
        ]
        by_line.sort(key=lambda row: (-row[2], row[0]))
        by_step.sort(key=lambda row: (-row[4], row[1]))
        yield (
            name,
            Table(f"{name}_code_exe", CODE_COLUMNS, tuple(by_line)),
            Table(f"{name}_instr_exe", INSTRUCTION_COLUMNS, tuple(by_step)),
        )


def _cycles(value: int) -> int:
    return min(max(int(value), 0), INT32)


def _time(cycles: int, mhz: float) -> str:
    """Two decimals, where other tables have six."""
    return f"{int(cycles) / mhz:.2f}"
