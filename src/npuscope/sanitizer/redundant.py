"""Set and wait pairs that order nothing: the same pair comes twice and neither pipe does anything in between.

The vendor's tool reports each half by itself (sanitizer.md 3.9), which also blames drains and iterations that happen to
have nothing to do. Here both halves must be idle, and the same two lines must never be of use anywhere in the launch:
then the second pair can be taken out without losing an order. A pipe_barrier in between changes nothing; any other
synchronisation does. A scalar wait holds back every later instruction, so for waits of pipe S the whole core must be
idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuscope.sanitizer.tally import USER_FLAGS, rows_of
from npuscope.trace.events import HardEvent
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Origin, Pipe

FLAGS = ("set_flag", "wait_flag")
TARGETS = np.array([int(event.target) for event in HardEvent])
PIPES = 16
KEY, ROW, IS_WAIT, SITE, RANK, WORK, TARGET = range(7)
"""Rows of the table of flag operations: (core, event, id) as one number, row in the launch, 0 set or 1 wait, line, how
many instructions its pipe has had, how many its core has had that are no flags or barriers, and the pipe that waits."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A pair that repeats the one before it, `count` times of as many as there were; rows and lines are those of set,
    wait, set, wait."""

    core: int
    event: int
    number: int
    rows: tuple[int, ...]
    sites: tuple[int, ...]
    cores: tuple[int, ...]
    count: int


class Redundancy:
    """Looks for repeated pairs in one launch."""

    def __init__(self) -> None:
        self._ranks = np.zeros(0, np.int64)  # instructions so far, by core and pipe
        self._work = np.zeros(0, np.int64)  # instructions other than flags and barriers so far, by core
        self._tail = np.empty((7, 0), np.int64)  # the last three operations of each flag
        self._uses: list[np.ndarray] = []  # (3, n): lines of set and wait, core, of every pair
        self._found: list[np.ndarray] = []  # (9, n): key, rows, lines of set, wait, set, wait

    def add(self, batch: Batch) -> None:
        """Take in the rows of a batch."""
        core, pipe, opcode = (batch.column(name) for name in ("core", "pipe", "opcode"))
        barrier = opcode == OPCODES.number("pipe_barrier")
        flags = rows_of(batch, FLAGS) & (batch.column("origin") == Origin.USER) & (batch.column("b") < USER_FLAGS)
        group = core * PIPES + pipe
        self._grow(len(batch.launch.cores))
        if flags.any():
            self._operations(batch, flags, group, barrier)
        self._ranks += np.bincount(group[~barrier], minlength=self._ranks.size)
        self._work += np.bincount(core[~(flags | barrier)], minlength=self._work.size)

    def line_of(self, row: int) -> int | None:
        """The line of a set or wait of an earlier batch that was among the last of its flag, by its row."""
        found = np.flatnonzero(self._tail[ROW] == row)
        return int(self._tail[SITE, found[0]]) if found.size else None

    def _grow(self, cores: int) -> None:
        if self._work.size < cores:
            self._ranks = np.zeros(cores * PIPES, np.int64)
            self._work = np.zeros(cores, np.int64)

    def _operations(self, batch: Batch, flags: np.ndarray, group: np.ndarray, barrier: np.ndarray) -> None:
        rows = np.flatnonzero(flags)
        core, event, number = (batch.column(name)[rows] for name in ("core", "a", "b"))
        rank = self._ranks[group[rows]] + _position(group, ~barrier)[rows]
        work = self._work[core] + _position(batch.column("core"), ~(flags | barrier))[rows]
        key = (core * len(TARGETS) + event) * USER_FLAGS + number
        wait = batch.column("opcode")[rows] == OPCODES.number("wait_flag")
        table = np.stack([key, batch.first + rows, wait, batch.column("site")[rows], rank, work, TARGETS[event]])
        table = np.concatenate([self._tail, table], axis=1)
        table = table[:, np.lexsort((table[ROW], table[KEY]))]
        self._compare(table, batch.first)
        keys = table[KEY]
        last = np.ones(keys.size, np.bool_)
        last[:-3] = keys[:-3] != keys[3:]
        self._tail = table[:, last]

    def _compare(self, table: np.ndarray, first: int) -> None:
        """Note every pair of the table that is new since row `first`, and those that repeat the one before."""
        size = table.shape[1]
        at = np.arange(size - 1)
        same = (table[KEY, :-1] == table[KEY, 1:]) & (table[IS_WAIT, :-1] == 0) & (table[IS_WAIT, 1:] == 1)
        ends = at[same] + 1  # the wait of each set and wait that follow one another
        ends = ends[table[ROW, ends] >= first]
        core = table[KEY, ends] // (len(TARGETS) * USER_FLAGS)
        self._uses.append(np.stack([table[SITE, ends - 1], table[SITE, ends], core]))
        ends = ends[ends >= 3]
        ends = ends[(table[KEY, ends - 3] == table[KEY, ends]) & (table[IS_WAIT, ends - 3] == 0)
                    & (table[IS_WAIT, ends - 2] == 1)]
        idle = (table[RANK, ends - 1] - table[RANK, ends - 3] == 1) & (table[RANK, ends] - table[RANK, ends - 2] == 1)
        idle &= (table[TARGET, ends] != Pipe.S) | (table[WORK, ends] == table[WORK, ends - 2])
        ends = ends[idle]
        if ends.size:
            four = [ends - 3, ends - 2, ends - 1, ends]
            self._found.append(np.stack([table[KEY, ends], *(table[ROW, one] for one in four),
                                         *(table[SITE, one] for one in four)]))

    def repeats(self) -> Iterator[Repeat]:
        """The pairs of lines that were of no use whenever they ran, at the end of the launch."""
        if not self._found:
            return
        found = np.concatenate(self._found, axis=1)
        uses = np.concatenate(self._uses, axis=1)
        for lines in np.unique(found[5:9], axis=1).T:
            chosen = found[:, (found[5:9] == lines[:, None]).all(axis=0)]
            second = (found[7:9] == lines[2:, None]).all(axis=0)
            used = uses[:, (uses[:2] == lines[2:, None]).all(axis=0)]
            alone = (lines[:2] == lines[2:]).all()
            needed = np.unique(used[2]).size if alone else 0  # the first one of each core, when a line repeats itself
            if int(second.sum()) < used.shape[1] - needed:
                continue
            rest, number = divmod(int(chosen[0, 0]), USER_FLAGS)
            core, event = divmod(rest, len(TARGETS))
            cores = np.unique(chosen[0] // (len(TARGETS) * USER_FLAGS))
            yield Repeat(core, event, number, tuple(chosen[1:5, 0].tolist()), tuple(chosen[5:9, 0].tolist()),
                         tuple(cores.tolist()), chosen.shape[1])


def _position(group: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """For each row, how many rows of its group before it are `counted`."""
    order = np.argsort(group, kind="stable")
    running = np.cumsum(counted[order]) - counted[order]
    ordered = group[order]
    heads = np.ones(ordered.size, np.bool_)
    heads[1:] = ordered[1:] != ordered[:-1]
    start = np.maximum.accumulate(np.where(heads, np.arange(ordered.size), 0))
    result = np.empty(group.size, np.int64)
    result[order] = running - running[start]
    return result
