"""What a rule may look at: a profile, with the sums that several rules need made once."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.busy import Busy
from npuscope.profiler.critical_path import CriticalPath, Piece
from npuscope.profiler.traffic import Traffic, traffic
from npuscope.trace.schema import CoreType, SourceFrame, Space
from npuscope.trace.timeline import UNKNOWN, Timeline

if TYPE_CHECKING:
    from npuscope.profiler.profile import Profile


class Case:
    """One launch as the rules see it. Everything is computed when first asked for."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.timeline: Timeline = profile.timeline
        self.chip: Chip = profile.chip

    @property
    def cycles(self) -> int:
        """Length of the task, at least 1."""
        return max(self.timeline.cycles, 1)

    @property
    def busy(self) -> Busy:
        """Working and waiting cycles by lane and core."""
        return self.profile.busy

    @property
    def path(self) -> CriticalPath:
        """The critical path."""
        return self.profile.critical_path

    @cached_property
    def on_path(self) -> np.ndarray:
        """Cycles of each slice on the critical path in which it was under way, (slices,)."""
        return self.path.by_slice(self.timeline.slices.shape[1], Piece.WORK)

    @cached_property
    def spans(self) -> np.ndarray:
        """Cycles from a core's first to its last, (cores,), at least 1; of the slices where cores are not known."""
        timeline = self.timeline
        if timeline.cores.shape[1] == len(timeline.launch.cores) and (timeline.core("end") >= 0).all():
            return np.asarray(np.maximum(timeline.core("end") - timeline.core("start"), 1))
        low = np.full(len(timeline.launch.cores), np.iinfo(np.int64).max)
        high = np.zeros(len(timeline.launch.cores), np.int64)
        np.minimum.at(low, timeline.slice("core"), timeline.slice("start"))
        np.maximum.at(high, timeline.slice("core"), timeline.slice("end"))
        return np.maximum(high - np.minimum(low, high), 1)

    @cached_property
    def vector_cores(self) -> np.ndarray:
        """Which cores are AIV, (cores,) bool."""
        return np.array([core.type is CoreType.AIV for core in self.timeline.launch.cores], bool)

    @cached_property
    def traffic(self) -> Traffic:
        """What moves to and from GM."""
        return traffic(self.timeline, self.chip)

    @cached_property
    def at_gm(self) -> np.ndarray:
        """Which transfers have one end in GM, (transfers,) bool."""
        return np.asarray(
            (self.timeline.transfer("source") == Space.GM) | (self.timeline.transfer("target") == Space.GM)
        )

    def lane_of(self, transfers: np.ndarray) -> np.ndarray:
        """The lane of each of those transfers."""
        return np.asarray(self.timeline.slice("lane")[self.timeline.transfer("slice")[transfers]])

    def share(self, cycles: float) -> float:
        """Cycles as a share of the task's time, 0..1."""
        return float(min(max(cycles / self.cycles, 0.0), 1.0))

    def frames(self, slices: np.ndarray, weight: np.ndarray | None = None) -> tuple[SourceFrame, ...]:
        """The lines of those slices (numbers or bool), the heaviest first: by `weight` of each, or by how many. Lines
        without weight are left out where others have some."""
        steps = self.timeline.slice("step")[slices]
        sums = np.bincount(steps, None if weight is None else weight, minlength=len(self.timeline.steps))
        known = np.bincount(steps, minlength=len(self.timeline.steps))
        by_frame: dict[SourceFrame, float] = defaultdict(float)
        for step in np.flatnonzero(known):
            for frame in self.timeline.steps[step].site.frames[:1]:
                by_frame[SourceFrame(frame.file, frame.line)] += float(sums[step])
        if any(by_frame.values()):
            by_frame = {frame: amount for frame, amount in by_frame.items() if amount}
        return tuple(sorted(by_frame, key=lambda frame: (-by_frame[frame], frame.file, frame.line)))

    def place(self, frames: tuple[SourceFrame, ...]) -> str:
        """The first line as a person writes it; the kernel where no line is known."""
        if not frames:
            return self.timeline.launch.kernel
        return f"{frames[0].file.rpartition('/')[2]}:{frames[0].line}"

    def column(self, name: str) -> np.ndarray | None:
        """A column of the core table, None where it is not known."""
        if not self.timeline.cores.shape[1]:
            return None
        values = self.timeline.core(name)
        return None if (values == UNKNOWN).any() else values
