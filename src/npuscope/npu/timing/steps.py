"""The instructions of a kernel's code, told from its trace: each (line, instruction, pipe, origin) is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.kinds import call_class, mnemonic
from npuscope.npu.timing.operands import Operands
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, Origin
from npuscope.trace.timeline import Lane, Step
from npuscope.trace.values import distinct

BASE = 0x10D0_0000
"""Where the made-up code begins."""
WORD = 4
"""Bytes of an instruction."""


@dataclass(frozen=True)
class Steps:
    """`steps` in order of first use; `of_row`: (rows,) the step of each row; `hidden`: (steps,) instructions that the
    scalar unit executes for it besides it; `first_line`, `last_line`: (steps,) of its code, lines counted from 0."""

    steps: list[Step]
    of_row: np.ndarray
    hidden: np.ndarray
    first_line: np.ndarray
    last_line: np.ndarray


def steps_of(rows: LaunchRows, operands: Operands, chip: Chip) -> Steps:
    """The code of a launch. Addresses are made up: a step follows what its call executes before it, four bytes each,
    and all of them what a kernel does at its start."""
    pipe, opcode = rows.column("pipe"), rows.column("opcode")
    key = ((rows.column("site") << 16) + opcode) * 64 + pipe * 4 + rows.column("origin")
    sample, step = distinct(key)
    hidden = np.array([calls(chip, OPCODES.names[opcode[row]], int(pipe[row])) for row in sample] or [0.0])
    entry = int(chip.timing.calls["kernel"])
    ends = entry + np.cumsum(np.round(hidden).astype(np.int64) + 1)
    line = chip.timing.icache.line_bytes // WORD
    starts = np.concatenate([[entry], ends[:-1]])
    dtypes = operands.dtype
    steps = [
        Step(
            BASE + WORD * (int(end) - 1), mnemonic(OPCODES.names[opcode[row]]), Lane(int(pipe[row])),
            rows.sites[int(rows.column("site")[row])], Origin(int(rows.column("origin")[row])),
            operands.dtypes[dtypes[row]] if dtypes[row] >= 0 else "",
        )
        for row, end in zip(sample, ends, strict=False)
    ]  # fmt: skip
    return Steps(steps, step, hidden, starts // line, (ends - 1) // line)


def calls(chip: Chip, name: str, pipe: int) -> float:
    """Instructions that the scalar unit executes for one call besides the row itself."""
    table = chip.timing.calls
    return table.get(name, table.get(call_class(name, pipe), table["other"]))
