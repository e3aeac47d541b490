"""Footprints as columns: what the model needs to know of the shape of an access."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint

RUN, TOTAL, ROWS, LOW, HIGH, COUNT0, STRIDE0, COUNT1, STRIDE1, COUNT2, STRIDE2, MASKED = range(12)
COLUMNS = 12
"""Bytes of a run; bytes in all; runs; first and past the last byte from the address; up to three loops of runs,
outermost first (count 1 where there is none); whether lanes are masked."""

_known = np.empty((COLUMNS, 0), np.int64)


def shape_table() -> np.ndarray:
    """(COLUMNS, footprints) int64 for every footprint that has been interned."""
    global _known
    fresh = FOOTPRINTS[_known.shape[1] :]
    if fresh:
        _known = np.concatenate([_known, np.array([_row(one) for one in fresh], np.int64).T], axis=1)
    return _known


def _row(shape: Footprint) -> tuple[int, ...]:
    loops = list(shape.loops)
    run = shape.nbytes
    masked = shape.mask is not None
    lanes = 1
    if shape.mask is not None:
        for count, _ in shape.loops[len(shape.loops) - shape.mask_rank :]:
            lanes *= count
        active = sum(shape.mask)
    rows = 1
    for count, _ in loops:
        rows *= count
    total = run * rows if not masked else run * rows // max(lanes, 1) * active
    if masked and len(loops) > 2 and loops[-1][1] == run:  # the lanes of a block follow one another
        run *= loops.pop()[0]
    loops = [(1, 0)] * (3 - len(loops)) + loops[-3:]
    rows = 1
    for count, _ in loops:
        rows *= count
    flat = [number for loop in loops for number in loop]
    return (run, total, rows, shape.low, shape.high, *flat, int(masked))


def explicit_table(explicit: list[Explicit]) -> np.ndarray:
    """The same for a launch's explicit footprints, ``-1`` first: the runs have no order, so the loops are of one
    row."""
    rows = [
        (one.nbytes, one.nbytes * one.starts.size, one.starts.size, one.low, one.high, 1, 0, 1, 0, 1, 0, 0)
        for one in explicit
    ]
    return np.array(rows, np.int64).reshape(-1, COLUMNS).T


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of accesses, of which few differ: `table` (COLUMNS, kinds) has the kinds, `kind` (accesses,) says which
    one an access has. A column is made when it is asked for, ``shapes[RUN]`` (accesses,)."""

    table: np.ndarray
    kind: np.ndarray

    def __getitem__(self, column: int) -> np.ndarray:
        return np.asarray(self.table[column].take(self.kind))

    def of(self, which: np.ndarray) -> Shapes:
        """Those of some accesses."""
        return Shapes(self.table, self.kind[which])

    def one(self, access: int) -> np.ndarray:
        """All columns of one access, (COLUMNS,)."""
        return np.asarray(self.table[:, self.kind[access]])


def shapes_of(numbers: np.ndarray, explicit: list[Explicit]) -> Shapes:
    """The shapes of a column of footprint numbers."""
    table = shape_table()
    if not explicit:
        return Shapes(table, numbers)
    both = np.concatenate([table, explicit_table(explicit)], axis=1)
    return Shapes(both, np.where(numbers >= 0, numbers, table.shape[1] - 1 - numbers))
