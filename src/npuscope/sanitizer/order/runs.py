"""Footprints as runs of bytes, for compiled code: all runs of all footprints in flat arrays, cut by `first`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint
from npuscope.trace.recorder import Batch


class Runs:
    """Footprint number n touches the bytes ``merged[0, i]`` to ``merged[1, i]`` past its address for i from
    ``first[0, n]`` to ``first[0, n + 1]``, ascending and apart; and in the order in which its elements count, which
    lane-wise instructions need, those of `in_order`, cut by ``first[1]``."""

    def __init__(self) -> None:
        self.first = np.zeros((2, 1), np.int64)
        self.merged = np.empty((2, 0), np.int64)
        self.in_order = np.empty((2, 0), np.int64)

    def grow(self) -> None:
        """Take in the footprints that are new."""
        fresh = FOOTPRINTS[self.first.shape[1] - 1 :]
        if fresh:
            self.extend(fresh)

    def extend(self, shapes: Sequence[Footprint | Explicit]) -> None:
        """Add footprints at the end."""
        in_order = [_in_order(shape) for shape in shapes]
        merged = [_merged(runs) for runs in in_order]
        counts = np.array([[runs.shape[1] for runs in merged], [runs.shape[1] for runs in in_order]], np.int64)
        self.first = np.concatenate([self.first, self.first[:, -1:] + np.cumsum(counts, axis=1)], axis=1)
        self.merged = np.concatenate([self.merged, *merged], axis=1)
        self.in_order = np.concatenate([self.in_order, *in_order], axis=1)


def explicit_runs(batch: Batch) -> tuple[Runs, int]:
    """The same for the explicit footprints that a batch uses, and which of the launch's is number 0 there: footprint
    number -1 of an access row is the launch's 0, -2 its 1."""
    runs = Runs()
    numbers = batch.access_column("footprint")
    used = -1 - numbers[numbers < 0]
    if not used.size:
        return runs, 0
    lowest = int(used.min())
    runs.extend(batch.explicit[lowest : int(used.max()) + 1])
    return runs, lowest


def _in_order(shape: Footprint | Explicit) -> np.ndarray:
    """Runs (2, n) in the order of the elements; neighbours that continue each other are one."""
    start = shape.starts() if isinstance(shape, Footprint) else shape.starts
    if isinstance(shape, Footprint) and shape.empty:
        start = start[:0]
    start = np.ascontiguousarray(start.reshape(-1), np.int64)
    fresh = np.ones(start.size, np.bool_)
    fresh[1:] = start[1:] != start[:-1] + shape.nbytes
    heads = np.flatnonzero(fresh)
    tails = np.append(heads[1:], start.size) - 1 if heads.size else heads
    return np.stack([start[heads], start[tails] + shape.nbytes])


def _merged(runs: np.ndarray) -> np.ndarray:
    """The same bytes as ascending runs that do not touch."""
    if runs.shape[1] < 2:
        return runs
    order = np.argsort(runs[0], kind="stable")
    start, reach = runs[0][order], np.maximum.accumulate(runs[1][order])
    fresh = np.ones(start.size, np.bool_)
    fresh[1:] = start[1:] > reach[:-1]
    heads = np.flatnonzero(fresh)
    return np.stack([start[heads], reach[np.append(heads[1:], start.size) - 1]])
