"""Which instructions have the same operands: a number for each that says so."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.operands import Operands
from npuscope.npu.timing.shapes import COUNT2, RUN, TOTAL
from npuscope.trace.rows import LaunchRows

COLUMNS = ("opcode", "pipe", "a", "b", "c", "d", "work")
SHAPE = (RUN, COUNT2, TOTAL)
"""What the operands' text says of an instruction, and of the shape of its accesses."""
GOLDEN, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


def operand_keys(rows: LaunchRows, operands: Operands, which: np.ndarray, address: np.ndarray) -> np.ndarray:
    """(those,) uint64: equal for rows of `which` whose columns and accesses are equal, and else different but for an
    accident (one in a billion for ten million rows: the keys are hashes of 64 bits). `address` is that of the accesses,
    (accesses,), those that are not to count being all alike."""
    keys = np.zeros(which.size, np.uint64)
    for name in COLUMNS:
        _mix(keys, slice(None), rows.column(name)[which])
    first = operands.first[which]
    counts = operands.first[which + 1] - first
    _mix(keys, slice(None), counts)
    same = np.unique(operands.shape.table[list(SHAPE)], axis=1, return_inverse=True)[1].reshape(-1)
    facts = ((same[operands.shape.kind] << 8) + operands.space * 2 + operands.writes, address)
    place, number = np.arange(which.size), 0
    while (place := place[counts[place] > number]).size:
        for fact in facts:
            _mix(keys, place, fact[first[place] + number])
        number += 1
    return keys


def _mix(keys: np.ndarray, place: slice | np.ndarray, values: np.ndarray) -> None:
    """Stir values into some of the keys."""
    mixed = (keys[place] ^ values.astype(np.int64).view(np.uint64)) * GOLDEN
    keys[place] = mixed ^ (mixed >> SHIFT)
