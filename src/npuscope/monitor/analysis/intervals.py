"""Time that ranges cover, counted once where they overlap. Times are int64 nanoseconds."""

from __future__ import annotations

import numpy as np

from npuscope.monitor.activity.batch import Column


class Cover:
    """Ranges merged into disjoint ones, which can be asked how much of any range they cover.

    Asking is two searches: the covered time until a moment is the sum of the ranges before it and a part of its own.
    """

    def __init__(self, start: Column, end: Column) -> None:
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        keep = end > start
        start, end = start[keep], end[keep]
        furthest = np.maximum.accumulate(end) if len(end) else end
        first = np.ones(len(start), bool)
        first[1:] = start[1:] > furthest[:-1]
        self.start = start[first]
        last = np.append(np.flatnonzero(first)[1:] - 1, len(start) - 1) if len(start) else np.zeros(0, np.int64)
        self.end = furthest[last]
        self._before = np.concatenate([[0], np.cumsum(self.end - self.start)])

    def until(self, moment: Column) -> Column:
        """Covered time before each moment."""
        if not len(self.start):
            return np.zeros(len(moment), np.int64)
        at = np.searchsorted(self.start, moment, "right") - 1
        inside = np.minimum(moment, self.end[at]) - self.start[at]
        return np.where(at < 0, 0, self._before[np.maximum(at, 0)] + inside)

    def within(self, start: Column, end: Column) -> Column:
        """Covered time in each range."""
        return self.until(end) - self.until(start)


def step_of(moments: Column, starts: Column, ends: Column) -> Column:
    """The step in which each moment lies, -1 for none; steps are disjoint and in the order of time."""
    if not len(starts):
        return np.full(len(moments), -1)
    at = np.searchsorted(starts, moments, "right") - 1
    return np.where((at >= 0) & (moments < ends[at]), at, -1)
