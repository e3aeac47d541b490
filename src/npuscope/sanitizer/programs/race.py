"""The race check of tile kernels: two programs touch the same bytes, one of them writes, and no atomic orders them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.sanitizer.findings import Collector, Finding
from npuscope.sanitizer.programs.lanes import unguarded
from npuscope.sanitizer.programs.order import AtomicOrder
from npuscope.sanitizer.programs.rows import (
    Intervals,
    RowReader,
    Rows,
    TooMany,
    intervals,
    united,
)
from npuscope.sanitizer.programs.sides import Pair, pair_finding
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import SAME_VALUE, VOLATILE, Role

MOST_PAIRS = 4096
"""Pairs of one launch that are asked about one by one."""
MOST_STEPS = 16
"""Accesses that one may meet before the rest are taken to say the same."""


class ProgramRace:
    """Takes the batches of launches of programs."""

    name = "race"

    def __init__(self) -> None:
        self._reader = RowReader()
        self._collector = Collector()
        self.limits: tuple[str, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._collector.findings

    def check(self, batch: Batch) -> None:
        """Look at one batch; a launch is judged when its last one comes."""
        rows = self._reader.take(batch)
        if rows is None or not rows.role.size:
            return
        try:
            for pair in (*self._between(rows), *unguarded(rows)):
                key, finding = pair_finding(rows, pair)
                self._collector.add(key, finding)
        except TooMany:
            self.limits = tuple(dict.fromkeys((*self.limits, f"{batch.launch.kernel} touches too many places")))

    def _between(self, rows: Rows) -> Iterator[Pair]:
        chosen = relevant(rows)
        if not chosen.size or np.unique(rows.program[chosen]).size < 2:
            return
        meetings = conflicts(rows, chosen)
        order = AtomicOrder(rows)
        if not order.empty:
            meetings = _unordered(rows, order, meetings)
        yield from _by_site(rows, meetings)


def _unordered(rows: Rows, order: AtomicOrder, meetings: np.ndarray) -> np.ndarray:
    """The meetings that no atomic operation orders. Raises TooMany when there are too many to ask about."""
    if meetings.shape[1] > MOST_PAIRS:
        raise TooMany
    program, serial = rows.program, rows.serial
    kept = [
        not order.before(int(program[one]), int(serial[one]), int(program[other]), int(serial[other]))
        for one, other in meetings[:2].T
    ]
    return meetings[:, kept]


def _by_site(rows: Rows, meetings: np.ndarray) -> Iterator[Pair]:
    """One pair for all that stand on the same two lines."""
    earlier, later, address = meetings
    keys = np.stack((rows.site[earlier], rows.site[later], rows.buffer[earlier], rows.buffer[later]))
    _, first, counts = np.unique(keys, axis=1, return_index=True, return_counts=True)
    for at, times in zip(first.tolist(), counts.tolist(), strict=True):
        one, other = int(earlier[at]), int(later[at])
        same = rows.semantics[one] & rows.semantics[other] & SAME_VALUE
        writes = rows.role[one] == rows.role[other] == Role.WRITE
        yield Pair(other, one, int(address[at]), same=bool(same and writes), times=times)


def relevant(rows: Rows) -> np.ndarray:
    """Indices of the rows in memory that somebody writes; volatile reads are meant to see others' writes."""
    written = {int(number) for role in (Role.WRITE, Role.ATOMIC) for number in rows.touched(role)}
    spans = [(rows.buffers[number].base, rows.buffers[number].base + rows.buffers[number].size) for number in written]
    numbers = [
        number
        for number, buffer in enumerate(rows.buffers)
        if any(buffer.base < end and start < buffer.base + buffer.size for start, end in spans)
    ]
    waits = (rows.role == Role.READ) & ((rows.semantics & VOLATILE) != 0)
    return np.flatnonzero(np.isin(rows.buffer, numbers) & ~waits)


def conflicts(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    """(earlier row, later row, first byte) as columns: accesses of two programs that meet, where one is a plain write,
    or one atomic and the other a plain read."""
    kinds = {role: chosen[rows.role[chosen] == role] for role in (Role.READ, Role.WRITE, Role.ATOMIC)}
    sets = {role: united(intervals(rows, members)) for role, members in kinds.items()}
    writes, reads, atomics = sets[Role.WRITE], sets[Role.READ], sets[Role.ATOMIC]
    pairs = ((writes, writes), (writes, reads), (writes, atomics), (atomics, reads))
    found = np.concatenate([_meetings(one, other) for one, other in pairs], axis=1)
    swap = rows.serial[found[0]] > rows.serial[found[1]]
    found[:2, swap] = found[1::-1, swap]
    return found


def _meetings(one: Intervals, other: Intervals) -> np.ndarray:
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
