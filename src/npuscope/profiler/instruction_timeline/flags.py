"""Sets and waits: the numbers that tie them together, and the arrows between them (opprof.md 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.instruction_timeline.drawn import Drawn
from npuscope.trace.timeline import EdgeKind, Timeline


@dataclass(frozen=True, slots=True)
class Arrows:
    """One row for each arrow, (arrows,) int64: the slices that it leads from (`source`) and to (`target`), and its
    `number`, which counts from 0 in the core of its target (`cross` false) or in the launch (`cross` true)."""

    source: np.ndarray
    target: np.ndarray
    number: np.ndarray
    cross: np.ndarray

    def __len__(self) -> int:
        return int(self.source.size)


def arrows(timeline: Timeline) -> Arrows:
    """An arrow for each wait that a set let go."""
    source, target = timeline.edge("source"), timeline.edge("target")
    cross = timeline.edge("kind") == EdgeKind.CROSS
    number = np.zeros(source.size, np.int64)
    number[cross] = np.arange(int(cross.sum()))
    number[~cross] = _count_within(timeline.slice("core")[target[~cross]])
    return Arrows(source, target, number, cross)


def flag_numbers(timeline: Timeline, drawn: Drawn, found: Arrows) -> np.ndarray:
    """The number of each set and wait within its core, (slices,) int64, -1 for other slices. A set and the wait that it
    lets go share the number of their arrow; the others have one of their own."""
    numbers = np.full(timeline.slices.shape[1], -1, np.int64)
    inside = ~found.cross
    numbers[found.target[inside]] = found.number[inside]
    numbers[found.source[inside]] = found.number[inside]
    alone = np.flatnonzero(drawn.flag & (numbers < 0))
    core = timeline.slice("core")
    taken = np.bincount(core[found.target[inside]], minlength=max(len(timeline.launch.cores), 1))
    numbers[alone] = taken[core[alone]] + _count_within(core[alone])
    numbers[~drawn.flag] = -1
    return numbers


def _count_within(groups: np.ndarray) -> np.ndarray:
    """0, 1, 2... for the rows of each group, in order, (rows,) int64."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if order.size else order
    lengths = np.diff(np.append(first, order.size))
    counted = np.empty(order.size, np.int64)
    counted[order] = np.arange(order.size) - np.repeat(first, lengths)
    return counted
