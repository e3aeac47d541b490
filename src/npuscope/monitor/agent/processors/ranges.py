"""Ranges out of the records of their two ends, which may come in different batches and in any order."""

from __future__ import annotations

import numpy as np

from npuscope.monitor.activity.batch import Batch, Column, joined
from npuscope.monitor.activity.kinds import ANY_END, ANY_INSTANT, ANY_START, Side

MOST_OPEN = 1 << 20
"""Ranges without an end that are remembered, some 64 MB; older ones are given up."""


def of_side(markers: Batch, side: Side) -> Batch:
    """The records that were taken on one side."""
    return markers.where(np.flatnonzero(markers["side"] == side))


def instants(markers: Batch) -> Batch:
    """The records that stand for a moment."""
    return markers.where(np.flatnonzero(markers["flag"] & ANY_INSTANT))


class Ranges:
    """Pairs starts and ends of one side by their id. An end whose start has not come waits for one more round:
    threads deliver when they like. After that its start was filtered out, or was before the collection."""

    def __init__(self, most_open: int = MOST_OPEN) -> None:
        self.given_up = 0
        """Starts that were forgotten because there were too many."""
        self._most = most_open
        self._waiting: Batch | None = None
        self._starts = 0  # of those waiting; the rest are ends

    @property
    def open(self) -> int:
        """Starts without an end so far."""
        return self._starts

    def pair(self, markers: Batch) -> tuple[Batch, Batch]:
        """The starts and the ends of ranges that are complete with these records: two batches of one length."""
        halves = markers.where(np.flatnonzero(markers["flag"] & (ANY_START | ANY_END)))
        old = len(self._waiting) if self._waiting is not None else 0
        every = joined([self._waiting, halves]) if self._waiting is not None else halves
        ends = (every["flag"] & ANY_END) != 0
        start, end = _couples(every["id"], ends)
        self._keep(every, ends, start, end, old)
        order = np.argsort(end, kind="stable")  # as they were completed
        return every.where(start[order]), every.where(end[order])

    def _keep(self, every: Batch, ends: Column, start: Column, end: Column, old: int) -> None:
        alone = np.ones(len(every), bool)
        alone[start] = alone[end] = False
        starts = np.flatnonzero(alone & ~ends)
        if len(starts) > self._most:
            self.given_up += len(starts) - self._most
            starts = starts[-self._most :]
        late = np.flatnonzero(alone & ends)
        late = late[late >= old]
        self._starts = len(starts)
        self._waiting = every.where(np.concatenate([starts, late])) if len(starts) + len(late) else None


def _couples(ids: Column, ends: Column) -> tuple[Column, Column]:
    """Indices of the starts and the ends that belong together: of one id the first start and the first end, and so
    on."""
    order = np.lexsort((ends, ids))
    turn = _turns(ids[order], ends[order])
    if turn.any():  # an id was used twice
        back = np.empty_like(turn)
        back[order] = turn
        order = np.lexsort((ends, back, ids))
        turn = back[order]
    number, last = ids[order], ends[order]
    meet = np.flatnonzero((number[:-1] == number[1:]) & (turn[:-1] == turn[1:]) & ~last[:-1] & last[1:])
    return order[meet], order[meet + 1]


def _turns(ids: Column, ends: Column) -> Column:
    """How many equal (id, end) stand before each, in sorted columns."""
    place = np.arange(len(ids))
    fresh = np.ones(len(ids), bool)
    fresh[1:] = (ids[1:] != ids[:-1]) | (ends[1:] != ends[:-1])
    return place - np.maximum.accumulate(np.where(fresh, place, 0))
