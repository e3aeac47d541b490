"""How many bytes an instruction moves to or from GM, read from its operands (opprof.md 3.9)."""

from __future__ import annotations

import re

import numpy as np

from npuscope.profiler.ingest.lines import Lines
from npuscope.trace.timeline import UNKNOWN, Lane

MOVERS = (Lane.MTE2, Lane.MTE3, Lane.FIXP)
"""Lanes that may move data to or from GM; the others move none."""
STILL = re.compile("FLAG|EVENT|BAR|SYNC|NOP|INTRA_BLOCK|MUTEX|QUE_|BUF")
"""Mnemonics on those lanes that move nothing."""
TOLD = (b"processed_bytes", b"process_bytes")
BLOCK = 32
"""Bytes of a unit of lenBurst in a plain burst; an aligned copy counts bytes."""
PLAIN = ("MOV_OUT_TO_UB", "MOV_UB_TO_OUT", "MOV_OUT_TO_L1", "MOV_L1_TO_OUT")
"""Bursts whose register XM holds nBurst in bits 4..15 and lenBurst in bits 16..31, in units of BLOCK."""
ALIGNED = "_ALIGN"
"""An aligned copy's lenBurst takes bits 16..36 and counts bytes."""


def process_bytes(lines: Lines, rows: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """Bytes of each slice, whose lines of the popped log are `rows`; UNKNOWN where the operands do not tell."""
    found = np.zeros(rows.size, np.int64)
    moves = np.array([STILL.search(name) is None for name in lines.mnemonics], np.bool_)
    moving = np.flatnonzero(np.isin(lane, MOVERS) & moves[lines.word[rows]])
    if moving.size:
        found[moving] = _told(lines, rows[moving])
    return found


def _told(lines: Lines, rows: np.ndarray) -> np.ndarray:
    """The number that the operands give outright, else that of their bursts."""
    told = lines.numbers(TOLD, rows)
    lacking = np.flatnonzero(told == UNKNOWN)
    if lacking.size:
        told[lacking] = _bursts(lines, rows[lacking])
    return told


def _bursts(lines: Lines, rows: np.ndarray) -> np.ndarray:
    """The bytes of the bursts that the operands describe."""
    length = lines.numbers((b"lenBurst",), rows)
    count = lines.numbers((b"nBurst",), rows)
    names = lines.mnemonics
    aligned = np.array([ALIGNED in name for name in names], np.bool_)[lines.word[rows]]
    told = np.where(length < 0, UNKNOWN, length * np.where(aligned, 1, BLOCK) * np.where(count < 0, 1, count))
    plain = np.array([name in PLAIN for name in names], np.bool_)[lines.word[rows]]
    packed = np.array([name.startswith(PLAIN) for name in names], np.bool_)[lines.word[rows]]
    register = lines.numbers((b"XM:",), rows)
    bursts = (register >> 4) & 0xFFF
    register_bytes = np.where(plain, ((register >> 16) & 0xFFFF) * BLOCK, (register >> 16) & 0x1FFFFF) * bursts
    return np.where((told == UNKNOWN) & (register >= 0) & (plain | (packed & aligned)), register_bytes, told)
