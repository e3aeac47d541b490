"""Numbers for things that are equal, and what belongs to what: compiled passes over columns."""

from __future__ import annotations

import numpy as np
from numba import njit

RETIRE_GAP = 8
"""Retirements of one pc at most this many cycles apart are those of one instruction's parts (opprof.md 4.3)."""
POP_GAP = 1
"""The same of pops."""
PAIRED, MERGED, UNMATCHED, REVERSED = range(4)
"""What became of a pop or a retirement: it has a partner, it is part of the one before, it has none, or the
partner's time lies before it."""


@njit(cache=True, nogil=True)
def _number(first: np.ndarray, second: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    table = np.full(room, -1, np.int32)
    codes = np.empty(first.size, np.int64)
    examples = np.empty(first.size, np.int64)
    known = 0
    for row in range(first.size):
        mixed = np.uint64(first[row]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second[row])
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        slot = np.int64(mixed >> np.uint64(32)) & (room - 1)
        while True:
            if table[slot] < 0:
                table[slot] = known
                examples[known] = row
                known += 1
            example = examples[table[slot]]
            if first[example] == first[row] and second[example] == second[row]:
                break
            slot = (slot + 1) & (room - 1)
        codes[row] = table[slot]
    return codes, examples[:known].copy()


def number(first: np.ndarray, second: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(code of each row, row of the first example of each code) of the distinct values, or pairs of values, of int64
    columns; codes count from 0 in the order of their first appearance."""
    if second is None:
        second = np.zeros(first.size, np.int64)
    return _number(first, second, 1 << max(4, (2 * first.size).bit_length()))


@njit(cache=True, nogil=True)
def ranks(codes: np.ndarray, count: int) -> np.ndarray:
    """How many rows of the same code stand before each row; codes lie in 0..count."""
    seen = np.zeros(count, np.int64)
    found = np.empty(codes.size, np.int64)
    for row in range(codes.size):
        found[row] = seen[codes[row]]
        seen[codes[row]] += 1
    return found


@njit(cache=True, nogil=True)
def grouped(codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows ordered by code and within a code as they stand, (count + 1) places where each code begins)."""
    begins = np.zeros(count + 1, np.int64)
    for code in codes:
        begins[code + 1] += 1
    for code in range(count):
        begins[code + 1] += begins[code]
    free = begins[:count].copy()
    order = np.empty(codes.size, np.int64)
    for row in range(codes.size):
        order[free[codes[row]]] = row
        free[codes[row]] += 1
    return order, begins


@njit(cache=True, nogil=True)
def _thin(rows: np.ndarray, ticks: np.ndarray, gap: int, exact: bool, fate: np.ndarray, last: bool) -> np.ndarray:
    """The rows of one pc with those merged that follow each other within `gap` cycles (exactly that many if `exact`). A
    run is known by its last row if `last`, else by its first."""
    kept = np.empty(rows.size, np.int64)
    count = 1
    kept[0] = rows[0]
    before = ticks[rows[0]]
    for place in range(1, rows.size):
        row = rows[place]
        apart = ticks[row] - before
        before = ticks[row]
        if (apart == gap) if exact else (0 <= apart <= gap):
            if last:
                fate[kept[count - 1]] = MERGED
                kept[count - 1] = row
            else:
                fate[row] = MERGED
        else:
            kept[count] = row
            count += 1
    return kept[:count]


@njit(cache=True, nogil=True)
def pair(
    pop_code: np.ndarray,
    pop_tick: np.ndarray,
    retire_code: np.ndarray,
    retire_tick: np.ndarray,
    count: int,
    merge: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row of the retirement of each pop, fates of pops, fates of retirements): the k-th pop of a code goes with its
    k-th retirement. Where their numbers differ and `merge` is set, parts are put together first; what is too much at
    the end stays unmatched (opprof.md 4.3)."""
    pops, pop_begins = grouped(pop_code, count)
    retires, retire_begins = grouped(retire_code, count)
    partner = np.full(pop_code.size, -1, np.int64)
    pop_fate = np.full(pop_code.size, UNMATCHED, np.int8)
    retire_fate = np.full(retire_code.size, UNMATCHED, np.int8)
    for code in range(count):
        ours = pops[pop_begins[code] : pop_begins[code + 1]]
        theirs = retires[retire_begins[code] : retire_begins[code + 1]]
        if merge and ours.size and theirs.size:
            if theirs.size > ours.size:
                theirs = _thin(theirs, retire_tick, RETIRE_GAP, False, retire_fate, True)
            if theirs.size < ours.size:
                ours = _thin(ours, pop_tick, POP_GAP, True, pop_fate, False)
        for place in range(min(ours.size, theirs.size)):
            pop, retire = ours[place], theirs[place]
            if pop_tick[pop] > retire_tick[retire]:
                pop_fate[pop] = retire_fate[retire] = REVERSED
            else:
                pop_fate[pop] = retire_fate[retire] = PAIRED
                partner[pop] = retire
    return partner, pop_fate, retire_fate
