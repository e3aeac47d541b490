"""How often each core did each synchronisation, line by line: what a report about a missing partner quotes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Origin

USER_FLAGS = 16
"""Flag numbers from here on belong to the framework's queue buffers."""

COUNTED = ("set_flag", "wait_flag", "cross_core_set", "cross_core_wait", "sync_all", "ib_set", "ib_wait",
           "notify_next_block", "wait_pre_block", "kernel_end")


@dataclass(frozen=True, slots=True)
class Entry:
    """`count` instructions `opcode` of one line on one core, with the same operands a and b."""

    opcode: str
    core: int
    a: int
    b: int
    site: int
    count: int


def rows_of(batch: Batch, names: tuple[str, ...]) -> np.ndarray:
    """Which instructions of a batch have one of `names`."""
    wanted = np.zeros(len(OPCODES.names) + len(names), np.bool_)
    wanted[[OPCODES.number(name) for name in names]] = True
    chosen: np.ndarray = wanted[batch.column("opcode")]
    return chosen


class Tally:
    """The program's own synchronisation in one launch (and the ends of kernels)."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []  # (6, n): opcode, core, a, b, site, count
        self._entries: list[Entry] | None = None

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch."""
        rows = rows_of(batch, COUNTED)
        own = (batch.column("origin") == Origin.USER) | (batch.column("opcode") == OPCODES.number("kernel_end"))
        rows &= own
        if rows.any():
            columns = [batch.column(name)[rows] for name in ("opcode", "core", "a", "b", "site")]
            self._parts.append(_counted(np.stack([*columns, np.ones(columns[0].size, np.int64)])))
            self._entries = None

    def entries(self, *names: str) -> Iterator[Entry]:
        """The entries of the instructions called `names`."""
        if self._entries is None:
            whole = np.concatenate(self._parts, axis=1) if self._parts else np.empty((6, 0), np.int64)
            self._entries = [
                Entry(OPCODES.names[row[0]], row[1], row[2], row[3], row[4], row[5])
                for row in _counted(whole).T.tolist()
            ]
        return (entry for entry in self._entries if entry.opcode in names)

    def count(self, name: str, core: int, a: int, b: int | None = None) -> int:
        """How often `core` did it with these operands (any b for None)."""
        return sum(
            entry.count for entry in self.entries(name)
            if entry.core == core and entry.a == a and (b is None or entry.b == b)
        )


def _counted(rows: np.ndarray) -> np.ndarray:
    """The rows with equal ones made one; counts (the last column) are added up. Sorted by core and line."""
    if rows.shape[1] < 2:
        return rows
    rows = rows[:, np.lexsort((rows[3], rows[2], rows[4], rows[0], rows[1]))]
    fresh = np.ones(rows.shape[1], np.bool_)
    fresh[1:] = (rows[:5, 1:] != rows[:5, :-1]).any(axis=0)
    heads = np.flatnonzero(fresh)
    sums = np.add.reduceat(rows[5], heads)
    return np.concatenate([rows[:5, heads], sums[None]])
