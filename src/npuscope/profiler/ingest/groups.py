"""Numbers for things that are equal, and what belongs to what: compiled passes over columns."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import inner, outer_free

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
    found = np.empty(codes.size, np.int64)
    _ranks(codes, np.zeros(count, np.int64), found)
    return found


@outer_free
def _ranks(codes: np.ndarray, seen: np.ndarray, found: np.ndarray) -> None:
    for row in range(codes.size):
        found[row] = seen[codes[row]]
        seen[codes[row]] += 1


def grouped(codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows ordered by code and within a code as they stand, (count + 1) places where each code begins)."""
    begins = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count))))
    order = np.empty(codes.size, np.int64)
    _ordered(codes, begins.copy(), order)
    return order, begins


@outer_free
def _ordered(codes: np.ndarray, free: np.ndarray, order: np.ndarray) -> None:
    """Put each row at the next free place of its code."""
    for row in range(codes.size):
        order[free[codes[row]]] = row
        free[codes[row]] += 1


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
    _pair(
        pops, pop_begins, pop_tick, pop_fate, retires, retire_begins, retire_tick, retire_fate, int(merge), partner
    )  # fmt: skip
    return partner, pop_fate, retire_fate


@inner
def _thin(rows: np.ndarray, begin: int, end: int, ticks: np.ndarray, gap: int, fate: np.ndarray, of_pops: int) -> int:
    """Merge those of the rows of one pc, which stand in ``rows[begin:end]``, that follow each other within `gap` cycles
    (exactly that many for pops), and put those that stay to the front; where they end. A run of retirements is known by
    its last row, one of pops by its first."""
    last = begin
    before = ticks[rows[begin]]
    for place in range(begin + 1, end):
        row = rows[place]
        apart = ticks[row] - before
        before = ticks[row]
        if apart != gap if of_pops else (apart < 0 or apart > gap):
            last += 1
            rows[last] = row
        elif of_pops:
            fate[row] = MERGED
        else:
            fate[rows[last]] = MERGED
            rows[last] = row
    return last + 1


@outer_free
def _pair(
    pops: np.ndarray,
    pop_begins: np.ndarray,
    pop_tick: np.ndarray,
    pop_fate: np.ndarray,
    retires: np.ndarray,
    retire_begins: np.ndarray,
    retire_tick: np.ndarray,
    retire_fate: np.ndarray,
    merge: int,
    partner: np.ndarray,
) -> None:
    """As `pair`, whose results are filled in; rows are grouped by code, and those that are merged lose their place."""
    for code in range(pop_begins.size - 1):
        ours, our_end = pop_begins[code], pop_begins[code + 1]
        theirs, their_end = retire_begins[code], retire_begins[code + 1]
        if merge and our_end > ours and their_end > theirs:
            if their_end - theirs > our_end - ours:
                gap, of_pops = np.int64(RETIRE_GAP), np.int64(0)
                their_end = _thin(retires, theirs, their_end, retire_tick, gap, retire_fate, of_pops)
            if their_end - theirs < our_end - ours:
                gap, of_pops = np.int64(POP_GAP), np.int64(1)
                our_end = _thin(pops, ours, our_end, pop_tick, gap, pop_fate, of_pops)
        for place in range(min(our_end - ours, their_end - theirs)):
            pop, retire = pops[ours + place], retires[theirs + place]
            if pop_tick[pop] > retire_tick[retire]:
                pop_fate[pop] = retire_fate[retire] = REVERSED
            else:
                pop_fate[pop] = retire_fate[retire] = PAIRED
                partner[pop] = retire
