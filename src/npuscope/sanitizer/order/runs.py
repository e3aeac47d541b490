"""Footprints as runs of bytes, for compiled code: all runs of all footprints in flat arrays, cut by `first`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint
from npuscope.trace.recorder import Batch


class Runs:
    """Footprint number n touches the bytes ``start[i]`` to ``end[i]`` past its address for i from ``first[n]`` to
    ``first[n + 1]``, ascending and apart; and in the order in which its elements count, which lane-wise instructions
    need, those of `ordered_start` and `ordered_end`, cut by `ordered_first`."""

    def __init__(self) -> None:
        self.first = np.zeros(1, np.int64)
        self.start = np.empty(0, np.int64)
        self.end = np.empty(0, np.int64)
        self.ordered_first = np.zeros(1, np.int64)
        self.ordered_start = np.empty(0, np.int64)
        self.ordered_end = np.empty(0, np.int64)

    def grow(self) -> None:
        """Take in the footprints that are new."""
        fresh = FOOTPRINTS[self.first.size - 1 :]
        if fresh:
            self.extend(fresh)

    def extend(self, shapes: Sequence[Footprint | Explicit]) -> None:
        """Add footprints at the end."""
        ordered = [_ordered(shape) for shape in shapes]
        merged = [_merged(start, end) for start, end in ordered]
        self.first = _lengthened(self.first, merged)
        self.start = np.concatenate([self.start, *(start for start, _ in merged)])
        self.end = np.concatenate([self.end, *(end for _, end in merged)])
        self.ordered_first = _lengthened(self.ordered_first, ordered)
        self.ordered_start = np.concatenate([self.ordered_start, *(start for start, _ in ordered)])
        self.ordered_end = np.concatenate([self.ordered_end, *(end for _, end in ordered)])


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


def _lengthened(first: np.ndarray, pieces: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    counts = np.array([start.size for start, _ in pieces], np.int64)
    return np.concatenate([first, first[-1] + np.cumsum(counts)])


def _ordered(shape: Footprint | Explicit) -> tuple[np.ndarray, np.ndarray]:
    """Runs in the order of the elements; neighbours that continue each other are one."""
    start = shape.starts() if isinstance(shape, Footprint) else shape.starts
    if isinstance(shape, Footprint) and shape.empty:
        start = start[:0]
    start = np.ascontiguousarray(start.reshape(-1), np.int64)
    if start.size < 2:
        return start, start + shape.nbytes
    fresh = np.concatenate([[True], start[1:] != start[:-1] + shape.nbytes])
    heads = np.flatnonzero(fresh)
    tails = np.append(heads[1:], start.size) - 1
    return start[heads], start[tails] + shape.nbytes


def _merged(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same bytes as ascending runs that do not touch."""
    if start.size < 2:
        return start, end
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    fresh = np.concatenate([[True], start[1:] > reach[:-1]])
    heads = np.flatnonzero(fresh)
    return start[heads], reach[np.append(heads[1:], start.size) - 1]
