"""Where the programs of a launch meet in memory."""

from __future__ import annotations

import numpy as np

from npuscope.sanitizer.programs.rows import Intervals, Rows, intervals, united
from npuscope.trace.schema import VOLATILE, Buffer, Role

MOST_STEPS = 16
"""Accesses that one may meet before the rest are taken to say the same."""


def relevant(rows: Rows) -> np.ndarray:
    """Indices of the rows in memory that somebody writes, not all with atomic operations; volatile reads are meant to
    see others' writes."""
    roles = Role.WRITE, Role.ATOMIC, Role.READ
    written, updated, read = ([rows.buffers[number] for number in rows.touched(role).tolist()] for role in roles)
    mixed = [buffer for buffer in updated if any(_overlap(buffer, other) for other in (*written, *read))]
    numbers = [
        number
        for number, buffer in enumerate(rows.buffers)
        if any(_overlap(buffer, other) for other in (*written, *mixed))
    ]
    waits = (rows.role == Role.READ) & ((rows.semantics & VOLATILE) != 0)
    return np.flatnonzero(np.isin(rows.buffer, numbers) & ~waits)


def _overlap(one: Buffer, other: Buffer) -> bool:
    return one.base < other.base + other.size and other.base < one.base + one.size


def conflicts(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    """(earlier row, later row, first byte) as columns: accesses of two programs that meet, where one is a plain write,
    or one atomic and the other a plain read."""
    kinds = {role: chosen[rows.role[chosen] == role] for role in (Role.READ, Role.WRITE, Role.ATOMIC)}
    sets = {role: united(intervals(rows, members)) for role, members in kinds.items()}
    writes, reads, atomics = sets[Role.WRITE], sets[Role.READ], sets[Role.ATOMIC]
    pairs = ((writes, writes), (writes, reads), (writes, atomics), (atomics, reads))
    found = np.concatenate([meetings(one, other) for one, other in pairs], axis=1)
    swap = rows.serial[found[0]] > rows.serial[found[1]]
    found[:2, swap] = found[1::-1, swap]
    return found


def meetings(one: Intervals, other: Intervals) -> np.ndarray:
    """Pairs of intervals of different programs that share bytes, each of `other`'s with a few of `one`'s."""
    parts = [np.zeros((3, 0), np.int64)]
    if not one.start.size or not other.start.size:
        return parts[0]
    order = np.argsort(one.start, kind="stable")
    start, end, program, row = (column[order] for column in (one.start, one.end, one.program, one.row))
    reach = np.maximum.accumulate(end)
    first = np.searchsorted(reach, other.start, "right")  # before it everything ends too early
    last = np.searchsorted(start, other.end, "left")
    for step in range(min(int((last - first).max(initial=0)), MOST_STEPS)):
        live = np.flatnonzero(first + step < last)
        place = first[live] + step
        meets = (end[place] > other.start[live]) & (program[place] != other.program[live])
        if one is other:
            meets &= row[place] < other.row[live]
        place, live = place[meets], live[meets]
        parts.append(np.stack((row[place], other.row[live], np.maximum(start[place], other.start[live]))))
    return np.concatenate(parts, axis=1)
