"""User marks: stretches between TRACE_START and TRACE_STOP (opprof.md 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.ingest.lines import Lines
from npuscope.profiler.ingest.losses import unbalanced_mark
from npuscope.trace.timeline import Loss

REGISTERS = (b"LPCNT", b"SPR:COND")
"""Special registers that a marking instruction writes or reads."""
SPECIAL = "SPR"
"""Mnemonics of instructions that read or write special registers hold this."""
BEGIN, END, IDS = 0x80000000, 0xC0000000, 10
"""Immediates: BEGIN + n and END + n, n below IDS."""
REGION = "DFX_REGION"
"""The instruction that marks on newer chips; its operand has bit 10 set, bit 11 at the end, and the id below."""
REGION_POINT, REGION_END, REGION_IDS = 0x400, 0x800, 0x400
NOP = "NOP_PIPE"
"""A marking instruction is followed by these: the first one after a start, and the last one after an end, give the
time."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One marked stretch; `pc` is that of the instruction that begins it, `row` its line in the retire log."""

    name: str
    start: int
    end: int
    pc: int
    row: int


def find_marks(lines: Lines, core: str) -> tuple[list[Mark], np.ndarray, list[Loss]]:
    """(marks, which lines are marking instructions, marks that do not balance) of a retire log."""
    is_mark, number, ends = _marking(lines)
    rows = np.flatnonzero(is_mark)
    names = lines.mnemonics
    begun: dict[int, int] = {}
    found: list[tuple[int, int, int]] = []
    broken: set[int] = set()
    for row, mark, end in zip(rows.tolist(), number[rows].tolist(), ends[rows].tolist(), strict=True):
        if end:
            if mark in begun:
                found.append((mark, begun.pop(mark), row))
            else:
                broken.add(mark)
        elif mark in begun:
            broken.add(mark)
        else:
            begun[mark] = row
    broken |= set(begun)
    marks = [
        Mark(_name(mark), _first_nop(lines, names, first), _last_nop(lines, names, last), int(lines.pc[first]), first)
        for mark, first, last in found
        if mark not in broken
    ]
    return marks, is_mark, [unbalanced_mark(_name(mark), core) for mark in sorted(broken)]


def is_marking(lines: Lines) -> np.ndarray:
    """Which lines are marking instructions, (lines,) bool."""
    return _marking(lines)[0]


def _marking(lines: Lines) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(is a mark, its number, whether it ends a stretch) of each line."""
    count = len(lines)
    found, number, ends = np.zeros(count, np.bool_), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    special = np.flatnonzero(lines.named(lambda name: SPECIAL in name))
    for register in REGISTERS:
        rows = lines.holding(register, special)
        value = lines.numbers((b"XN:", b"XD:"), rows)
        for base in (BEGIN, END):
            here = rows[(value >= base) & (value < base + IDS)]
            found[here], ends[here] = True, base == END
            number[here] = value[(value >= base) & (value < base + IDS)] - base
    if REGION in lines.mnemonics:
        rows = np.flatnonzero(lines.named(lambda name: name == REGION))
        value = lines.numbers((b'"xt_value"',), rows)
        good = (value >= 0) & (value & REGION_POINT != 0) & (value < REGION_POINT * 4)
        found[rows[good]], ends[rows[good]] = True, value[good] & REGION_END != 0
        number[rows[good]] = value[good] % REGION_IDS
    return found, number, ends


def _name(mark: int) -> str:
    return f"Mark 0x{mark:x}"


def _first_nop(lines: Lines, names: list[str], row: int) -> int:
    follows = row + 1 < len(lines) and names[lines.word[row + 1]] == NOP
    return int(lines.tick[row + 1 if follows else row])


def _last_nop(lines: Lines, names: list[str], row: int) -> int:
    while row + 1 < len(lines) and names[lines.word[row + 1]] == NOP:
        row += 1
    return int(lines.tick[row])
