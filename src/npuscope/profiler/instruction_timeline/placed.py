"""Where each slice of a timeline is drawn: its place, which is a core with a lane or a warp, and its row there."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from npuscope.profiler.instruction_timeline.drawn import Drawn
from npuscope.profiler.instruction_timeline.stacking import stacked
from npuscope.trace.timeline import UNKNOWN, Lane, Source, Timeline, distinct_details
from npuscope.trace.values import few_distinct

LANES = 32
"""More than there are lanes; the numbers behind them are warps'."""


class Placed:
    """`places` are those that have slices, each (core, lane, warp): the warp is UNKNOWN where there is none, the lane 0
    where there is one. `which` (slices,) says where in them each slice is. `found` is how the slices are drawn; `lane`
    stands for their own lanes."""

    def __init__(self, timeline: Timeline, found: Drawn, lane: np.ndarray | None = None) -> None:
        self.drawn = found
        self.places, self.which = distinct_places(timeline, timeline.slice("lane") if lane is None else lane)

    @cached_property
    def row(self) -> np.ndarray:
        """Of each slice, from 0: slices of a place that overlap have several, (slices,) int64."""
        return stacked(self.which, self.drawn.start, self.drawn.end)

    @cached_property
    def rows(self) -> np.ndarray:
        """How many rows each place has, (places,) int64."""
        found = np.zeros(len(self.places), np.int64)
        np.maximum.at(found, self.which, self.row + 1)
        return found

    @cached_property
    def tracks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each row of each place, in their order: the place and the row, (tracks,) int64; and (slices,) int64 which of
        them each slice is on."""
        rows = self.rows
        first = np.cumsum(rows) - rows
        place = np.repeat(np.arange(rows.size), rows)
        return place, np.arange(place.size) - first[place], first[self.which] + self.row


def with_memory_lane(timeline: Timeline, found: Placed) -> Placed:
    """The same, where scalar instructions with a memory operand (``XD:`` in a vendor's log) have their own lane."""
    if timeline.source is not Source.SIMULATOR:
        return found
    scalar = np.flatnonzero((timeline.slice("lane") == Lane.SCALAR) & (timeline.slice("warp") == UNKNOWN))
    texts, which = distinct_details(timeline.details, scalar)
    moved = np.array(["XD:" in text for text in texts], bool)[which]
    lane = timeline.slice("lane").copy()
    lane[scalar[moved]] = Lane.SCALARLDST
    return Placed(timeline, found.drawn, lane)


def distinct_places(timeline: Timeline, lane: np.ndarray) -> tuple[list[tuple[int, int, int]], np.ndarray]:
    """`places` and `which` of :class:`Placed`."""
    core, warp = timeline.slice("core"), timeline.slice("warp")
    warps = int(warp.max(initial=UNKNOWN)) + 1
    width = LANES + warps
    place = core * width + (np.where(warp == UNKNOWN, lane, warp + LANES) if warps else lane)
    numbers, which = few_distinct(place, int(place.max(initial=0)) + 1)
    cores, kinds = (numbers // width).tolist(), (numbers % width).tolist()
    places = [
        (one, 0, kind - LANES) if kind >= LANES else (one, kind, UNKNOWN)
        for one, kind in zip(cores, kinds, strict=True)
    ]
    return places, which
