"""Time that is covered by intervals, however they overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
Cover = tuple[Column, Column]
"""Starts and ends of intervals that neither touch nor overlap, in order."""


def merged(start: Column, end: Column) -> Cover:
    """The union of intervals."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, reached = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate([[True], start[1:] > reached[:-1]])
    return start[first], reached[np.concatenate([np.flatnonzero(first)[1:] - 1, [len(start) - 1]])]


def covered(cover: Cover, start: Column, end: Column) -> Column:
    """How much of each window [start, end] a cover fills."""
    return _before(cover, end) - _before(cover, start)


def common(one: Cover, other: Cover) -> Cover:
    """The intersection of two covers."""
    edges = np.unique(np.concatenate([*one, *other]))
    if len(edges) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    start, end = edges[:-1], edges[1:]
    both = (covered(one, start, end) > 0) & (covered(other, start, end) > 0)
    return merged(start[both], end[both])


def _before(cover: Cover, times: Column) -> Column:
    """How much of a cover lies before each moment."""
    starts, ends = cover
    if not len(starts):
        return np.zeros(len(times), np.int64)
    total = np.concatenate([[0], np.cumsum(ends - starts)])
    row = np.searchsorted(starts, times, "right")
    last = np.maximum(row - 1, 0)
    beyond = np.where(row > 0, np.maximum(ends[last] - times, 0), 0)
    return total[row] - beyond
