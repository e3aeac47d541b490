"""Numbers for things that are equal, and what belongs to what."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import outer_free

SHORT = 1 << 16
"""Codes up to which rows are grouped by counting, which takes a tenth of the time of comparing."""
RETIRE_GAP = 8
"""Retirements of one pc at most this many cycles apart are those of one instruction's parts (opprof.md 4.3)."""
POP_GAP = 1
"""The same of pops."""
PAIRED, MERGED, UNMATCHED, REVERSED = range(4)
"""What became of a pop or a retirement: it has a partner, it is part of the one before, it has none, or the
partner's time lies before it."""


@outer_free
def _number(first: np.ndarray, second: np.ndarray, table: np.ndarray, codes: np.ndarray, examples: np.ndarray) -> int:
    """How many there are; `table` is room for a hash table of row numbers, all -1."""
    known, room = 0, table.size
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
    return known


def number(first: np.ndarray, second: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(code of each row, row of the first example of each code) of the distinct values, or pairs of values, of int64
    columns; codes count from 0 in the order of their first appearance."""
    if second is None:
        second = np.zeros(first.size, np.int64)
    codes, examples = np.empty((2, first.size), np.int64)
    table = np.full(1 << max(4, (2 * first.size).bit_length()), -1, np.int32)
    return codes, examples[: _number(first, second, table, codes, examples)].copy()


def ranks(codes: np.ndarray, count: int) -> np.ndarray:
    """How many rows of the same code stand before each row; codes lie in 0..count."""
    order, begins = grouped(codes, count)
    found = np.empty(codes.size, np.int64)
    found[order] = np.arange(codes.size) - np.repeat(begins[:-1], np.diff(begins))
    return found


def grouped(codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows ordered by code and within a code as they stand, (count + 1) places where each code begins)."""
    begins = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count))))
    short = codes.astype(np.uint16) if count <= SHORT else codes
    return np.argsort(short, kind="stable"), begins


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
    partner = np.full(pop_code.size, -1, np.int64)
    pop_fate = np.full(pop_code.size, UNMATCHED, np.int8)
    retire_fate = np.full(retire_code.size, UNMATCHED, np.int8)
    pops, pop_begins = grouped(pop_code, count)
    retires, retire_begins = grouped(retire_code, count)
    if merge:
        more = _thinned(retire_begins, pop_begins)
        retires, retire_begins = _thin(retires, retire_code, retire_tick, more, RETIRE_GAP, retire_fate, pops=False)
        more = _thinned(pop_begins, retire_begins)
        pops, pop_begins = _thin(pops, pop_code, pop_tick, more, POP_GAP, pop_fate, pops=True)
    counts = np.minimum(np.diff(pop_begins), np.diff(retire_begins))
    turn = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    pop, retire = pops[np.repeat(pop_begins[:-1], counts) + turn], retires[np.repeat(retire_begins[:-1], counts) + turn]
    right = pop_tick[pop] <= retire_tick[retire]
    pop_fate[pop] = retire_fate[retire] = np.where(right, PAIRED, REVERSED)
    partner[pop[right]] = retire[right]
    return partner, pop_fate, retire_fate


def _thinned(begins: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of which codes there are more than of the other kind, which has some, (codes,) bool."""
    return (np.diff(begins) > np.diff(others)) & (np.diff(others) > 0)


def _thin(
    rows: np.ndarray,
    codes: np.ndarray,
    ticks: np.ndarray,
    chosen: np.ndarray,
    gap: int,
    fate: np.ndarray,
    *,
    pops: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, grouped by code, without those that are merged because they follow the one before within `gap` cycles
    (exactly that many for pops), and where each code begins; only of the `chosen` codes (bool). A run of retirements is
    known by its last row, one of pops by its first."""
    code = codes[rows]
    apart = np.diff(ticks[rows])
    close = (apart == gap) if pops else (apart >= 0) & (apart <= gap)
    close &= (code[1:] == code[:-1]) & chosen[code[1:]]
    merged = np.zeros(rows.size, bool)
    merged[1:] |= close & pops
    merged[:-1] |= close & (not pops)
    fate[rows[merged]] = MERGED
    kept = rows[~merged]
    return kept, np.concatenate(([0], np.cumsum(np.bincount(code[~merged], minlength=chosen.size))))
