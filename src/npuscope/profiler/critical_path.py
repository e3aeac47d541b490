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
    from npuscope.profiler.critical_walk import walk  # compiled at its first use

    pieces = np.empty((8 * start.size + 8, 4), np.int64)  # takes no memory where nothing is written
    count = walk(
        start, end, timeline.slice("issue"), lane,
        *_previous(core * (max(Lane) + 1) + lane, end), *_previous(core, end), *_sources(timeline),
        draining(timeline) + 2 * ending(timeline), int(np.argmax(end)), pieces,
    )  # fmt: skip
    found, begin, finish, kind = pieces[:count].T[:, ::-1].copy()
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
