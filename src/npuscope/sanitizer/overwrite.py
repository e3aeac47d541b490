"""Global memory that several cores of a launch write, with nothing to say which write comes last (sanitizer.md 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Role

ORDERING = ("cross_core_set", "cross_core_wait", "sync_all", "ib_set", "ib_wait", "notify_next_block", "wait_pre_block")
"""Instructions that order cores. Where a launch has one, later writes may be meant: only a race check can tell."""


@dataclass(frozen=True, slots=True)
class Write:
    """One of the writes that meet: the core, and what the trace says of the instruction."""

    core: int
    buffer: int
    address: int
    footprint: int
    opcode: int
    pipe: int
    site: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Bytes `start` to `end` of global memory were written by two cores."""

    start: int
    end: int
    writes: tuple[Write, Write]


START, END, CORE, BUFFER, ADDRESS, FOOTPRINT = range(6)


class Writers:
    """Collects the non-atomic writes to global memory of one launch."""

    def __init__(self) -> None:
        self._rows: list[np.ndarray] = []  # (9, n): start, end, then the fields of Write
        self.ordered = False

    def add(self, batch: Batch, on_gm: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Take the writes of a batch; `on_gm` says which access rows are on GM, `low` and `high` their extents."""
        numbers = [OPCODES.number(name) for name in ORDERING]
        self.ordered = self.ordered or bool(np.isin(batch.column("opcode"), numbers).any())
        instruction, role, buffer, address, footprint = batch.access
        chosen = on_gm & (role == Role.WRITE) & (low < high)
        if chosen.any():
            at = instruction[chosen] - batch.first
            columns = [address[chosen] + low[chosen], address[chosen] + high[chosen], batch.column("core")[at]]
            columns += [column[chosen] for column in (buffer, address, footprint)]
            columns += [batch.column(name)[at] for name in ("opcode", "pipe", "site")]
            self._rows.append(np.stack(columns))

    def overlaps(self, batch: Batch) -> list[Overlap]:
        """Every stretch of bytes that two cores wrote; empty when the launch orders its cores."""
        if self.ordered or not self._rows:
            return []
        rows = np.concatenate(self._rows, axis=1)
        if np.unique(rows[CORE]).size < 2 or not _crossing(_per_core(rows)).size:
            return []
        exact = _exact(rows, batch)
        merged = _per_core(exact)
        found = []
        for first, second in _crossing(merged):
            start, end = int(merged[START, second]), int(min(merged[END, first], merged[END, second]))
            sides = [_covering(exact, int(merged[CORE, one]), start) for one in (first, second)]
            found.append(Overlap(start, end, (sides[0], sides[1])))
        return found


def _per_core(rows: np.ndarray) -> np.ndarray:
    """The union of each core's intervals: (3, n) start, end, core, sorted by start."""
    order = np.lexsort((rows[START], rows[CORE]))
    start, end, core = rows[START][order], rows[END][order], rows[CORE][order]
    reach = np.maximum.accumulate(end + core * (1 << 52)) - core * (1 << 52)  # per core, as cores are sorted
    fresh = np.ones(start.size, np.bool_)
    fresh[1:] = (core[1:] != core[:-1]) | (start[1:] > reach[:-1])
    heads = np.flatnonzero(fresh)
    tails = np.append(heads[1:], start.size) - 1
    merged = np.stack([start[heads], reach[tails], core[heads]])
    return merged[:, np.argsort(merged[0], kind="stable")]


def _crossing(merged: np.ndarray) -> np.ndarray:
    """(n, 2) pairs of intervals of different cores that share bytes: each one and the one that reaches over it."""
    start, end = merged[START], merged[END]
    reach = np.maximum.accumulate(end)
    later = np.flatnonzero(start[1:] < reach[:-1]) + 1
    leader = np.maximum.accumulate(np.where(end == reach, np.arange(end.size), 0))
    return np.stack([leader[later - 1], later], axis=1)


def _exact(rows: np.ndarray, batch: Batch) -> np.ndarray:
    """The rows with strided and explicit footprints cut into the runs that they really touch."""
    parts = []
    for number in np.unique(rows[FOOTPRINT]):
        chosen = rows[:, rows[FOOTPRINT] == number]
        shape = FOOTPRINTS[number] if number >= 0 else batch.explicit[-number - 1]
        starts = shape.starts() if number >= 0 else shape.starts
        begin = (chosen[ADDRESS][:, None] + starts).reshape(-1)
        repeated = np.repeat(chosen[CORE:], starts.size, axis=1)
        parts.append(np.concatenate([np.stack([begin, begin + shape.nbytes]), repeated]))
    return np.concatenate(parts, axis=1)


def _covering(rows: np.ndarray, core: int, byte: int) -> Write:
    """The first write of `core` that holds `byte`."""
    row = np.flatnonzero((rows[CORE] == core) & (rows[START] <= byte) & (byte < rows[END]))[0]
    return Write(*(int(value) for value in rows[CORE:, row]))
