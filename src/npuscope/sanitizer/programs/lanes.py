"""Lanes of one program that meet in memory: a store, then a load of the same bytes by other lanes, and no barrier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from npuscope.sanitizer.programs.rows import ACQUIRE, Rows, intervals
from npuscope.sanitizer.programs.sides import Pair
from npuscope.trace.schema import Role

SAMPLE = 16
"""Programs that are looked at; all run the same code."""
MOST_ROWS = 512
"""Memory operations of one program that are compared with each other."""
MOST_MET = 8
"""Stores that one load is compared with."""


def unguarded(rows: Rows) -> list[Pair]:
    """Pairs of a plain store and a later plain load of one program, by different lanes, without a barrier between: the
    first for each line that stores, with the other lines that load in a note."""
    stores = np.flatnonzero(rows.role == Role.WRITE)
    loads = np.flatnonzero(rows.role == Role.READ)
    if not stores.size or not loads.size:
        return []
    if not np.intersect1d(_places(rows, stores), _places(rows, loads)).size:
        return []
    barriers = _barriers(rows)
    seen: dict[tuple[tuple[str, int], tuple[str, int]], Pair] = {}
    programs = np.intersect1d(rows.program[stores], rows.program[loads])
    for program in programs[np.linspace(0, programs.size - 1, min(SAMPLE, programs.size)).astype(int)]:
        own = np.sort(barriers[1][barriers[0] == program])
        for pair in _of_program(rows, stores, loads, int(program), own):
            key = rows.line(pair.earlier), rows.line(pair.later)
            known = seen.get(key)
            seen[key] = pair if known is None else replace(known, times=known.times + 1)
    found: dict[tuple[str, int], list[Pair]] = {}
    for (store, _), pair in seen.items():
        found.setdefault(store, []).append(pair)
    return [_joined(rows, pairs) for pairs in found.values()]


def _joined(rows: Rows, pairs: list[Pair]) -> Pair:
    first, *others = sorted(pairs, key=lambda pair: int(rows.serial[pair.later]))
    lines = ", ".join(str(line) for _, line in dict.fromkeys(rows.line(pair.later) for pair in others))
    several = len(others) > 1
    words = f"Line{'s' * several} {lines} read{'s' * (not several)} what it stores in the same way."
    return replace(first, times=sum(pair.times for pair in pairs), also=(words,) if others else ())


def _barriers(rows: Rows) -> np.ndarray:
    """Program and serial of what lets the lanes of a program wait for each other: barriers, and atomic operations that
    order memory, which a compiler puts between two barriers."""
    atomics = np.flatnonzero((rows.role == Role.ATOMIC) & ((rows.semantics & 15) >= ACQUIRE))
    return np.concatenate((rows.barriers, np.stack((rows.program[atomics], rows.serial[atomics]))), axis=1)


def _places(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    """Numbers of memories that rows touch: buffers that overlap count as one."""
    first: dict[int, int] = {}
    for number, buffer in enumerate(rows.buffers):
        first[number] = next(
            other
            for other, that in enumerate(rows.buffers)
            if other == number or (that.base < buffer.base + buffer.size and buffer.base < that.base + that.size)
        )
    return np.unique([first[int(number)] for number in np.unique(rows.buffer[chosen])])


def _of_program(
    rows: Rows, stores: np.ndarray, loads: np.ndarray, program: int, barriers: np.ndarray
) -> Iterator[Pair]:
    mine = stores[rows.program[stores] == program][:MOST_ROWS]
    theirs = loads[rows.program[loads] == program][:MOST_ROWS]
    written, read = intervals(rows, mine), intervals(rows, theirs)
    if not written.start.size or not read.start.size:
        return
    written = written.chosen(np.argsort(written.start, kind="stable"))
    reach = np.maximum.accumulate(written.end)
    begin = np.searchsorted(reach, read.start, "right")
    finish = np.searchsorted(written.start, read.end, "left")
    told: set[tuple[int, int]] = set()
    for at in np.flatnonzero(begin < finish):
        for place in range(begin[at], min(finish[at], begin[at] + MOST_MET)):
            store, load = int(written.row[place]), int(read.row[at])
            if written.end[place] <= read.start[at] or rows.serial[store] > rows.serial[load] or (store, load) in told:
                continue
            if _same_lanes(rows, store, load) or _between(barriers, rows.serial[store], rows.serial[load]):
                continue
            told.add((store, load))
            yield Pair(load, store, int(max(written.start[place], read.start[at])), lanes=True)


def _same_lanes(rows: Rows, one: int, other: int) -> bool:
    """Whether each lane touches what it touched before."""
    return all(column[one] == column[other] for column in (rows.shape, rows.lane, rows.lanes))


def _between(barriers: np.ndarray, low: int, high: int) -> bool:
    return bool(np.searchsorted(barriers, low) < np.searchsorted(barriers, high))
