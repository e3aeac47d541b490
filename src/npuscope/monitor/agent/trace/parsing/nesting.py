"""What lies within what, on each thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]


@dataclass(frozen=True)
class Nesting:
    """`parent[i]` is the row of the innermost slice around slice i on its thread, -1 when there is none; `levels` are
    the rows of each depth, the outermost first."""

    parent: Column
    levels: list[Column]

    def within(self, values: Column) -> Column:
        """Of each slice, the sum of `values` over itself and all that lies within it."""
        total = values.copy()
        for level in self.levels[:0:-1]:
            rows = level[self.parent[level] >= 0]
            np.add.at(total, self.parent[rows], total[rows])
        return total

    def alone(self, values: Column) -> Column:
        """Of each slice, its value without those of the slices directly within it."""
        inner = np.zeros_like(values)
        child = self.parent >= 0
        np.add.at(inner, self.parent[child], values[child])
        return values - inner


def nest(thread: Column, start: Column, end: Column) -> Nesting:
    """The nesting of slices [start, end] of several threads. No loop over slices: a slice's depth is how many are open
    when it starts, and its parent is the last one before it that is one level up."""
    count = len(start)
    parent = np.full(count, -1, np.int64)
    if not count:
        return Nesting(parent, [])
    order = np.lexsort((-end, start, thread))
    depth = np.empty(count, np.int64)
    depth[order] = _depths(thread[order], start[order], end[order])
    levels: list[Column] = []
    # By thread and start, as `order` has them: places in that order stand for both.
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    by_depth = order[np.argsort(depth[order], kind="stable")]
    bounds = np.searchsorted(depth[by_depth], np.arange(depth.max() + 2))
    for level in range(depth.max() + 1):
        rows = by_depth[bounds[level] : bounds[level + 1]]
        if level:
            above = levels[-1]
            parent[rows] = above[np.searchsorted(place[above], place[rows]) - 1]
        levels.append(rows)
    # Slices that only overlap lie in nobody.
    child = np.flatnonzero(parent >= 0)
    parent[child[end[parent[child]] < start[child]]] = -1
    return Nesting(parent, levels)


def _depths(thread: Column, start: Column, end: Column) -> Column:
    """How many slices of its thread are open when each one starts; rows come by thread, start, longest first."""
    count = len(start)
    # At one moment, what has lasted ends first, then begins what begins, and what takes no time ends with what began.
    ends = np.where(end > start, 0, 2)
    times = np.concatenate([start, end])
    threads = np.concatenate([thread, thread])
    turn = np.concatenate([np.ones(count, np.int64), ends])
    row = np.concatenate([np.arange(count), np.arange(count)])
    order = np.lexsort((row, turn, times, threads))
    opened = order < count
    open_before = np.cumsum(np.where(opened, 1, -1)) - 1
    depth = np.empty(count, np.int64)
    depth[order[opened]] = open_before[opened]
    return depth
