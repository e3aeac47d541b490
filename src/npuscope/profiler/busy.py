"""How long each pipe of each core was at work, and how much of it at the same time as another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from npuscope.profiler.waits import waiting
from npuscope.trace.timeline import Lane, Timeline


def union_lengths(group: np.ndarray, start: np.ndarray, end: np.ndarray, groups: int) -> np.ndarray:
    """Cycles covered by the intervals [start, end) of each group, each cycle counted once, (groups,) int64."""
    if not group.size:
        return np.zeros(groups, np.int64)
    # On one axis with the groups behind each other a running maximum never reaches into the next group.
    first = int(start.min())
    span = int(end.max()) - first + 1
    begin, finish = group * span + (start - first), group * span + (end - first)
    order = np.argsort(begin, kind="stable")
    begin, finish = begin[order], finish[order]
    reached = np.empty_like(finish)
    reached[0] = begin[0]
    np.maximum.accumulate(finish[:-1], out=reached[1:])
    new = np.maximum(finish - np.maximum(begin, reached), 0)
    return np.bincount(group[order], new, minlength=groups).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Busy:
    """Cycles of one launch: `work` and `wait` are (lanes, cores) int64, rows indexed by the number of a Lane; `work`
    counts a cycle of a pipe once however many of its instructions were under way, and leaves waits out."""

    work: np.ndarray
    wait: np.ndarray

    def lane(self, lane: Lane) -> np.ndarray:
        """Working cycles of a pipe on each core, (cores,)."""
        return np.asarray(self.work[lane])


def busy(timeline: Timeline) -> Busy:
    """Working and waiting cycles of every pipe and core."""
    cores, lanes = len(timeline.launch.cores), max(Lane) + 1
    group = timeline.slice("lane") * cores + timeline.slice("core")
    start, end, idle = timeline.slice("start"), timeline.slice("end"), waiting(timeline)
    known = (start >= 0) & (end >= start)
    work = known & ~idle

    def lengths(which: np.ndarray) -> np.ndarray:
        return union_lengths(group[which], start[which], end[which], lanes * cores).reshape(lanes, cores)

    return Busy(lengths(work), lengths(known & idle))


class Working:
    """The slices of a launch that work, sorted by core and start, so that what several sets of lanes cover costs no
    more sorting."""

    def __init__(self, timeline: Timeline) -> None:
        self.cores = len(timeline.launch.cores)
        start, end = timeline.slice("start"), timeline.slice("end")
        work = np.flatnonzero((start >= 0) & (end >= start) & ~waiting(timeline))
        span = int(end.max(initial=0)) + 1  # cores behind each other on one axis: no interval reaches into the next
        core = timeline.slice("core")[work]
        begin = core * span + start[work]
        order = np.argsort(begin, kind="stable")
        self._core, self._lane = core[order], timeline.slice("lane")[work[order]]
        self._begin, self._finish = begin[order], core[order] * span + end[work[order]]

    def lengths(self, lanes: Collection[Lane]) -> np.ndarray:
        """Cycles in which any of the lanes worked, (cores,) int64."""
        wanted = np.zeros(max(Lane) + 1, bool)
        wanted[list(lanes)] = True
        which = np.flatnonzero(wanted[self._lane])
        if not which.size:
            return np.zeros(self.cores, np.int64)
        begin, finish = self._begin[which], self._finish[which]
        np.maximum(begin[1:], np.maximum.accumulate(finish[:-1]), out=begin[1:])
        new = np.maximum(finish - begin, 0)
        return np.bincount(self._core[which], new, minlength=self.cores).astype(np.int64)

    def together(self, first: Collection[Lane], second: Collection[Lane]) -> np.ndarray:
        """(3, cores) int64: cycles in which any lane of `first` worked, any of `second`, and both at once."""
        one, two, either = self.lengths(first), self.lengths(second), self.lengths({*first, *second})
        return np.stack([one, two, one + two - either])
