"""Where a kernel's cycles go: by instruction and by source line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.trace.schema import SourceFrame
from npuscope.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LineSpot:
    """One line of source. Arrays are (cores,), cycles are summed over its instructions, `covered` counts each cycle of
    a core once however many pipes worked for the line; `steps` are its instructions."""

    frame: SourceFrame
    steps: tuple[int, ...]
    executed: np.ndarray
    cycles: np.ndarray
    covered: np.ndarray
    bytes: np.ndarray


@dataclass(frozen=True, slots=True)
class HotSpots:
    """Arrays are (steps, cores) of int64; `lines` come with the most cycles first."""

    executed: np.ndarray
    cycles: np.ndarray
    bytes: np.ndarray
    lines: list[LineSpot]


def hot_spots(timeline: Timeline) -> HotSpots:
    """Cycles of every instruction and line of a launch."""
    shape = (len(timeline.steps), len(timeline.launch.cores))
    place = timeline.slice("step") * shape[1] + timeline.slice("core")
    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, values, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)

    cycles = total(timeline.slice("end") - timeline.slice("start"))
    executed, moved = total(np.ones(place.size)), total(timeline.slice("bytes"))
    by_frame: dict[SourceFrame, list[int]] = {}
    for number, step in enumerate(timeline.steps):
        for frame in step.site.frames[:1]:
            by_frame.setdefault(frame, []).append(number)
    lines = [
        LineSpot(frame, tuple(steps), executed[steps].sum(0), cycles[steps].sum(0), cycles[steps].sum(0),
                 moved[steps].sum(0))
        for frame, steps in by_frame.items()
    ]
    return HotSpots(executed, cycles, moved, sorted(lines, key=lambda line: -int(line.cycles.sum())))
