"""The critical path: the chain of work, waits and issue that made a launch last as long as it did.

It is walked back from the last instruction to end. What let an instruction start when it did is, in this order:

* the set that a wait was let go by, where the wait was still standing then;
* for a set, a barrier or the end of the kernel, the instruction that it stood behind until that was done;
* the instruction before it in its pipe, where it was already in the queue when that one was done;
* otherwise the scalar unit, which had not issued it yet: the path goes on at the message of another core that it had
  to have first, at the instruction that was issued before, or, where the queue of the pipe was full, at the one that
  made room in it.

Every cycle from the end of the launch back to its start belongs to exactly one piece of the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from npuscope.profiler.waits import draining, ending
from npuscope.trace.timeline import EdgeKind, Lane, Timeline


class Piece(IntEnum):
    """What a stretch of the path is."""

    WORK = 0  # an instruction under way
    ISSUE = 1  # not yet issued, or issued and not yet started: the scalar unit's time
    START = 2  # before the first instruction of a core: launch overhead
    SIGNAL = 3  # what it waits for is on its way from another core


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Columns of int64, in time order: `slice` (UNKNOWN for START), `start`, `end`, `piece`. The stretches touch each
    other: their lengths sum to the end of the last instruction."""

    slice: np.ndarray
    start: np.ndarray
    end: np.ndarray
    piece: np.ndarray

    @property
    def cycles(self) -> np.ndarray:
        """Length of each stretch."""
        return np.asarray(self.end - self.start)

    def of(self, piece: Piece) -> int:
        """Cycles of one kind of stretch."""
        return int(self.cycles[self.piece == piece].sum())

    def by_slice(self, slices: int, piece: Piece | None = None) -> np.ndarray:
        """Cycles that each slice has on the path, in stretches of one kind or of all, (slices,) int64."""
        mine = (self.slice >= 0) if piece is None else (self.slice >= 0) & (self.piece == piece)
        return np.bincount(self.slice[mine], self.cycles[mine], minlength=slices).astype(np.int64)


def critical_path(timeline: Timeline) -> CriticalPath:
    """The critical path of a launch; empty where nothing ran."""
    start, end = timeline.slice("start"), timeline.slice("end")
    if not start.size or end.max() < 0:
        none = np.zeros(0, np.int64)
        return CriticalPath(none, none, none, none)
    core, lane = timeline.slice("core"), timeline.slice("lane")
    pieces = _walker()(
        start, end, timeline.slice("issue"), lane,
        *_previous(core * (max(Lane) + 1) + lane, end), *_previous(core, end), *_sources(timeline),
        draining(timeline) + 2 * ending(timeline),
    )  # fmt: skip
    found, begin, finish, kind = np.array(pieces, np.int64).reshape(-1, 4).T[:, ::-1]
    keep = finish > begin
    return _joined(CriticalPath(found[keep], begin[keep], finish[keep], kind[keep]))


def _joined(path: CriticalPath) -> CriticalPath:
    """Neighbouring stretches of one kind and slice as one."""
    new = np.ones(path.slice.size, bool)
    new[1:] = (path.slice[1:] != path.slice[:-1]) | (path.piece[1:] != path.piece[:-1])
    first = np.flatnonzero(new)
    last = np.append(first[1:], new.size) - 1
    return CriticalPath(path.slice[first], path.start[first], path.end[last], path.piece[first])


def lane_shares(timeline: Timeline, path: CriticalPath) -> dict[str, int]:
    """Cycles of the path by what they were spent on: the names of lanes, ``issue``, ``start`` and ``signal``; the
    most first."""
    lanes = timeline.slice("lane")
    shares = {"issue": path.of(Piece.ISSUE), "start": path.of(Piece.START), "signal": path.of(Piece.SIGNAL)}
    work = path.piece == Piece.WORK
    cycles = np.bincount(lanes[path.slice[work]], path.cycles[work], minlength=max(Lane) + 1)
    shares |= {lane.name: int(cycles[lane]) for lane in Lane}
    return {name: count for name, count in sorted(shares.items(), key=lambda one: -one[1]) if count}


def line_cycles(timeline: Timeline, path: CriticalPath) -> dict[tuple[str, int], int]:
    """Cycles of the path by the innermost (file, line), the most first."""
    steps = np.bincount(
        timeline.slice("step"), path.by_slice(timeline.slices.shape[1]), minlength=len(timeline.steps)
    ).astype(np.int64)
    found: dict[tuple[str, int], int] = {}
    for step, cycles in zip(timeline.steps, steps.tolist(), strict=True):
        for frame in step.site.frames[:1]:
            place = (frame.file, frame.line)
            found[place] = found.get(place, 0) + cycles
    return {place: count for place, count in sorted(found.items(), key=lambda one: -one[1]) if count}


def _previous(group: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each slice the one before it in its group, and the one of those before it that ends last; -1 for none."""
    order = np.argsort(group, kind="stable")
    grouped, number = group[order], np.arange(group.size)
    first = np.ones(group.size, bool)
    first[1:] = grouped[1:] != grouped[:-1]
    before = np.full(group.size, -1, np.int64)
    before[order[1:]] = np.where(first[1:], -1, order[:-1])
    # Records of the running maximum: groups lie behind each other on one axis, so that it starts afresh in each.
    span = int(end.max()) + 2
    height = grouped * span + end[order]
    reached = np.maximum.accumulate(height)
    record = np.maximum.accumulate(np.where(height == reached, number, 0))
    latest = np.full(group.size, -1, np.int64)
    latest[order[1:]] = np.where(first[1:], -1, order[record[:-1]])
    return before, latest


def _sources(timeline: Timeline) -> tuple[np.ndarray, np.ndarray]:
    """For each slice the set that let it go, -1 for none, and whether that was another core's; the last one where there
    are several."""
    found = np.full(timeline.slices.shape[1], -1, np.int64)
    cross = np.zeros(found.size, bool)
    source, target = timeline.edge("source"), timeline.edge("target")
    order = np.argsort(timeline.slice("end")[source], kind="stable")
    found[target[order]] = source[order]
    cross[target[order]] = timeline.edge("kind")[order] == EdgeKind.CROSS
    return found, cross


@cache
def _walker() -> Any:
    """The walk, compiled when first needed."""
    from numba import njit

    return njit(cache=True)(_walk)


SHORT = 16
"""Cycles between two issues that are the scalar unit's own; a longer gap may be a full queue."""
DEPTH = 64
"""How many places back an instruction can be that made room in a queue (no chip's queues are deeper)."""


def _walk(
    start: np.ndarray,
    end: np.ndarray,
    issue: np.ndarray,
    lane: np.ndarray,
    before_in_lane: np.ndarray,
    latest_in_lane: np.ndarray,
    before: np.ndarray,
    latest: np.ndarray,
    released: np.ndarray,
    crossing: np.ndarray,
    drains: np.ndarray,
) -> list[tuple[int, int, int, int]]:
    """(slice, from, to, piece) backwards from the end. Compiled by numba: plain loops, no Python objects."""
    work, queue, begin, signal, everything, scalar = 0, 1, 2, 3, 6, 0
    at = int(np.argmax(end))
    time = end[at]
    pieces = [(at, time, time, work)]
    for _ in range(8 * start.size + 8):  # a path visits a slice at most a few times; never walk for ever
        source = released[at]
        if source >= 0 and end[source] > start[at] and end[source] <= time and source != at:
            pieces.append((at, end[source], time, signal if crossing[at] else work))
            at, time = source, end[source]
            continue
        under_way = latest[at] if lane[at] == everything or drains[at] == 2 else latest_in_lane[at]
        if drains[at] and under_way >= 0 and start[at] < end[under_way] <= time:
            pieces.append((at, end[under_way], time, work))
            at, time = under_way, end[under_way]
            continue
        began = min(start[at], time)
        pieces.append((at, began, time, work))
        time = began
        previous = latest[at] if lane[at] == everything else before_in_lane[at]
        queued = issue[at]
        if previous >= 0 and (queued < 0 or min(end[previous], time) >= queued):
            done = min(end[previous], time)
            pieces.append((at, done, time, queue))
            at, time = previous, done
            continue
        # The scalar unit was late: back along what it issued.
        while True:
            issued = min(issue[at], time) if issue[at] >= 0 else time
            pieces.append((at, issued, time, queue))
            time = issued
            earlier = before[at]
            source = released[at]
            if source >= 0 and end[source] <= time and (earlier < 0 or end[source] >= issue[earlier]):
                pieces.append((at, end[source], time, signal))  # the scalar unit waited for a message
                at, time = source, end[source]
                break
            if earlier < 0:
                pieces.append((-1, 0, time, begin))
                return pieces
            if lane[earlier] == scalar or issue[earlier] < 0 or issue[at] < 0:
                done = min(end[earlier], time)
                pieces.append((at, done, time, queue))
                at, time = earlier, done
                break
            if time - issue[earlier] > SHORT:
                room = before_in_lane[at]
                for _step in range(DEPTH):
                    if room < 0 or start[room] <= time:
                        break
                    room = before_in_lane[room]
                if room >= 0 and start[room] > issue[earlier] and start[room] >= time - 2:
                    pieces.append((at, min(start[room], time), time, queue))
                    at, time = room, min(start[room], time)
                    break
            done = min(issue[earlier], time)
            pieces.append((at, done, time, queue))
            at, time = earlier, done
    pieces.append((-1, 0, time, begin))
    return pieces
