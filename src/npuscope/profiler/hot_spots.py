"""Where a kernel's cycles go: by instruction and by source line (opprof.md 2.5, 3.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from npuscope.profiler.utilisation import vector_utilisation
from npuscope.trace.schema import SourceFrame
from npuscope.trace.timeline import UNKNOWN, Lane, Step, Timeline
from npuscope.trace.values import among

MARKS = (Lane.USERMARK, Lane.CACHEMISS)
"""Lanes whose slices are no instructions."""


@dataclass(frozen=True, slots=True)
class LineSpot:
    """One line of source. Arrays are (cores,) int64, UNKNOWN where nothing is known.

    `cycles` are summed over the instructions of the line, `covered` counts each cycle of a core once however many pipes
    worked for the line. `bytes` are those to and from GM, `hits` and `misses` L2 cache lines. `steps` are the line's
    instructions.
    """

    frame: SourceFrame
    steps: tuple[int, ...]
    executed: np.ndarray
    cycles: np.ndarray
    covered: np.ndarray
    bytes: np.ndarray
    hits: np.ndarray
    misses: np.ndarray


@dataclass(frozen=True, slots=True)
class HotSpots:
    """Arrays are (steps, cores) of int64, UNKNOWN where a figure is not known or does not apply.

    `cycles` sums ``end - start`` and `covered` counts each cycle once. `read_conflict` and `write_conflict` are the
    worst of an instruction's executions in cycles lost to UB banks; `utilisation` (float64, NaN for UNKNOWN) is the
    lowest share of a full vector instruction, 0..100. `fetching` is the time from the instruction cache to the control
    unit, `controlling` from there to its pipe. `lines` give each instruction to its innermost line, `frames` to every
    line of its call stack; both come with the most cycles first.
    """

    executed: np.ndarray
    cycles: np.ndarray
    covered: np.ndarray
    bytes: np.ndarray
    hits: np.ndarray
    misses: np.ndarray
    read_conflict: np.ndarray
    write_conflict: np.ndarray
    utilisation: np.ndarray
    fetching: np.ndarray
    controlling: np.ndarray
    lines: list[LineSpot]
    frames: list[LineSpot]

    @property
    def scalar(self) -> np.ndarray:
        """Cycles from the instruction cache to the pipe, (steps, cores)."""
        return known_sum(np.stack([self.fetching, self.controlling]))


def hit_rate(hits: np.ndarray, misses: np.ndarray) -> np.ndarray:
    """Share of the L2 lines that were found, 0..100; NaN where there were none or they are not known."""
    total = np.maximum(hits, 0) + np.maximum(misses, 0)
    return np.where(total > 0, 100.0 * np.maximum(hits, 0) / np.maximum(total, 1), np.nan)


def known_sum(values: np.ndarray) -> np.ndarray:
    """Sum along the first axis of what is known; UNKNOWN where nothing is."""
    return np.where((values >= 0).any(0), np.maximum(values, 0).sum(0), UNKNOWN)


def hot_spots(timeline: Timeline) -> HotSpots:
    """Cycles of every instruction and line of a launch."""
    sums = Sums(timeline)
    inner = by_line(timeline.steps, innermost=True)
    stack = by_line(timeline.steps, innermost=False)
    union = _union(timeline, sums, [*inner.values(), *stack.values()])
    steps = len(timeline.steps)
    start, control = timeline.slice("start"), timeline.slice("control")
    vector = timeline.slice("lane") == Lane.VECTOR
    spots = HotSpots(
        executed=sums.count(),
        cycles=sums.total(timeline.slice("end") - start),
        covered=union[:steps],
        bytes=sums.total(timeline.slice("bytes")),
        hits=sums.moved("hits"),
        misses=sums.moved("misses"),
        read_conflict=sums.highest(np.where(vector, timeline.slice("bank_group"), UNKNOWN)),
        write_conflict=sums.highest(np.where(vector, timeline.slice("bank"), UNKNOWN)),
        utilisation=sums.lowest(vector_utilisation(timeline)),
        fetching=sums.total(_span(timeline.slice("fetch"), control)),
        controlling=sums.total(_span(control, start)),
        lines=[],
        frames=[],
    )
    spots.lines.extend(_spots(spots, inner, union[steps : steps + len(inner)]))
    spots.frames.extend(_spots(spots, stack, union[steps + len(inner) :]))
    return spots


class Sums:
    """Adds up figures of slices by (step, core). Marks are left out."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.shape = (len(timeline.steps), len(timeline.launch.cores))
        self.real = ~among(timeline.slice("lane"), MARKS)
        self.place = timeline.slice("step") * self.shape[1] + timeline.slice("core")

    def count(self) -> np.ndarray:
        """How often each step ran."""
        return self._bins(self.place[self.real], None)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums of a slice column; UNKNOWN where a step has no known value."""
        known = self.real & (values >= 0)
        return self._or_unknown(self.place[known], values[known])

    def moved(self, name: str) -> np.ndarray:
        """Sums of a transfer column."""
        values, owner = self.timeline.transfer(name), self.timeline.transfer("slice")
        known = (values >= 0) & (owner >= 0)
        return self._or_unknown(self.place[owner[known]], values[known])

    def highest(self, values: np.ndarray) -> np.ndarray:
        """The greatest value of a slice column; UNKNOWN where there is none."""
        out = np.full(self.shape[0] * self.shape[1], UNKNOWN, np.int64)
        np.maximum.at(out, self.place[self.real], values[self.real])
        return out.reshape(self.shape)

    def lowest(self, values: np.ndarray) -> np.ndarray:
        """The least value of a float column of the slices, NaN left out; NaN where there is none."""
        known = self.real & ~np.isnan(values)
        out = np.full(self.shape[0] * self.shape[1], np.inf)
        np.minimum.at(out, self.place[known], values[known])
        return np.where(np.isinf(out), np.nan, out).reshape(self.shape)

    def _or_unknown(self, place: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.where(self._bins(place, None) > 0, self._bins(place, values), UNKNOWN)

    def _bins(self, place: np.ndarray, values: np.ndarray | None) -> np.ndarray:
        size = self.shape[0] * self.shape[1]
        return np.bincount(place, values, minlength=size).astype(np.int64).reshape(self.shape)


def by_line(steps: Iterable[Step], *, innermost: bool) -> dict[tuple[str, int], list[int]]:
    """The steps of each (file, line), in order; of its innermost line only, or of every line of its call stack."""
    found: dict[tuple[str, int], list[int]] = {}
    for number, step in enumerate(steps):
        frames = step.site.frames[:1] if innermost else step.site.frames
        for key in dict.fromkeys((frame.file, frame.line) for frame in frames):
            found.setdefault(key, []).append(number)
    return found


def _span(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    return np.where((begin >= 0) & (end >= 0), np.maximum(end - begin, 0), UNKNOWN)


def _union(timeline: Timeline, sums: Sums, lines: list[list[int]]) -> np.ndarray:
    """Covered cycles of each step, then of each of `lines`, (steps + lines, cores)."""
    count = len(timeline.steps)
    owners: list[list[int]] = [[number] for number in range(count)]
    for group, steps in enumerate(lines):
        for number in steps:
            owners[number].append(count + group)
    first = np.cumsum([0, *map(len, owners)], dtype=np.int64)
    groups = np.array([group for owned in owners for group in owned], np.int64)
    order = np.flatnonzero(sums.real)
    order = order[np.argsort(timeline.slice("start")[order])]
    start, end, step, core = (timeline.slice(name) for name in ("start", "end", "step", "core"))
    shape = (count + len(lines), sums.shape[1])
    from npuscope.profiler.intervals import covered  # compiled at its first use

    return np.asarray(covered(order, start, end, step, core, first, groups, shape))


def _spots(spots: HotSpots, lines: dict[tuple[str, int], list[int]], union: np.ndarray) -> list[LineSpot]:
    found = [
        LineSpot(
            SourceFrame(*key),
            tuple(steps),
            spots.executed[steps].sum(0),
            spots.cycles[steps].clip(0).sum(0),
            union[row],
            known_sum(spots.bytes[steps]),
            known_sum(spots.hits[steps]),
            known_sum(spots.misses[steps]),
        )
        for row, (key, steps) in enumerate(lines.items())
    ]
    return sorted(found, key=lambda line: (-int(line.cycles.sum()), line.frame.file, line.frame.line))
