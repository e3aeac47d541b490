"""Ranges of a kernel's own time stamps: the lanes of MC2 kernels (opprof.md 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.instruction_timeline.labels import NO_LABELS, Labels
from npuscope.profiler.instruction_timeline.marks import START, STOP
from npuscope.trace.timeline import UNKNOWN, Loss, Timeline

AI_CORE, KERNEL, BLOCK = "AI CORE", "kernel", "BLOCK"
FIRST_USER_ID = 0xFFFF
"""Description ids below this are not a user's range."""


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of time with a name. `process` and `thread` say where it is drawn, `number` is its description id and
    `slice` the instruction that begins it (UNKNOWN where no instruction does)."""

    process: str
    thread: str
    name: str
    start: int
    end: int
    number: int = UNKNOWN
    slice: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Communication:
    """The lanes of a kernel that communicates: `ranges` in the order of their lanes and starts; `losses` are time
    stamps without a partner."""

    ranges: tuple[Range, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def marked(self) -> bool:
        """Whether the kernel marked any range itself."""
        return any(item.number != UNKNOWN for item in self.ranges)


def communication(timeline: Timeline, labels: Labels = NO_LABELS) -> Communication:
    """The whole kernel, the time of each block if wanted, and what lies between the first and the second time stamp of
    one id on a core, the third and the fourth, and so on."""
    names = core_names(timeline.launch)
    ranges = [Range(AI_CORE, KERNEL, timeline.launch.kernel, 0, timeline.cycles)]
    if labels.block_time:
        ranges += _blocks(timeline, names)
    marked, losses = _marked(timeline, names, labels)
    return Communication((*ranges, *marked), losses)


def _blocks(timeline: Timeline, names: list[str]) -> list[Range]:
    """When each core was at work."""
    if not timeline.cores.shape[1]:
        return []
    starts, ends = timeline.core("start").tolist(), timeline.core("end").tolist()
    return [
        Range(BLOCK, name, f"Block {core.block}", start, end)
        for name, core, start, end in zip(names, timeline.launch.cores, starts, ends, strict=True)
        if UNKNOWN < start < end
    ]


def _marked(timeline: Timeline, names: list[str], labels: Labels) -> tuple[list[Range], tuple[Loss, ...]]:
    other = {number for number, step in enumerate(timeline.steps) if step.text.upper() in (*START, *STOP)}
    rows, numbers = timeline.mark("slice"), timeline.mark("number")
    order = np.argsort(timeline.slice("start")[rows], kind="stable")
    open_stamps: dict[tuple[int, int], int] = {}
    found: list[tuple[int, Range]] = []
    for row, number in zip(rows[order].tolist(), numbers[order].tolist(), strict=True):
        if number < FIRST_USER_ID or int(timeline.slice("step")[row]) in other:
            continue
        core = int(timeline.slice("core")[row])
        first = open_stamps.pop((core, number), None)
        if first is None:
            open_stamps[core, number] = row
            continue
        start, end = int(timeline.slice("end")[first]), int(timeline.slice("start")[row])
        found.append(
            (core, Range(BLOCK, names[core], labels.names.get(number, str(number)), start, end, number, first))
        )
    found.sort(key=lambda item: (item[0], item[1].start))
    losses = tuple(
        Loss("time stamp", f"Time stamp {labels.names.get(number, number)} of {names[core]} has no second call.", core)
        for core, number in sorted(open_stamps)
    )
    return [item for _, item in found], losses
