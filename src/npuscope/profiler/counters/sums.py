"""Columns of a timeline's slices, and sums over them core by core."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

import numpy as np

from npuscope.profiler.busy import Busy, busy, union_lengths
from npuscope.profiler.signals import is_signal
from npuscope.profiler.waits import is_wait
from npuscope.trace.timeline import UNKNOWN, Lane, Step, Timeline
from npuscope.trace.values import among


class Sums:
    """Sums are (cores,) float64; NaN on a core where the timeline does not tell."""

    def __init__(self, timeline: Timeline, found: Busy | None = None) -> None:
        self.timeline = timeline
        self._busy = found
        self.cores = len(timeline.launch.cores)
        self.core = timeline.slice("core")
        self.lane = timeline.slice("lane")
        self.step = timeline.slice("step")
        self.start = timeline.slice("start")
        self.end = np.maximum(timeline.slice("end"), self.start)

    @cached_property
    def waits(self) -> np.ndarray:
        """Which slices only wait, (slices,) bool."""
        return self.of_steps(is_wait)

    @cached_property
    def works(self) -> np.ndarray:
        """Which slices are neither waits nor flags, (slices,) bool."""
        return self.of_steps(lambda step: not is_wait(step) and not is_signal(step))

    def of_steps(self, test: Callable[[Step], bool | None]) -> np.ndarray:
        """Which slices are of a step that passes a test, (slices,) bool."""
        verdict = np.array([bool(test(step)) for step in self.timeline.steps], bool)
        return verdict[self.step] if verdict.size else np.zeros(self.step.size, bool)

    def on(self, lanes: Collection[Lane]) -> np.ndarray:
        """Which slices are on one of the lanes, (slices,) bool."""
        return np.asarray(self.lane == next(iter(lanes)) if len(lanes) == 1 else among(self.lane, lanes))

    def total(self, core: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        """Sum of `values`, one each on `core`; without them, how many there are."""
        return np.bincount(core, values, minlength=self.cores).astype(np.float64)

    def known_total(self, core: np.ndarray, values: np.ndarray) -> np.ndarray:
        """As `total`; NaN on a core that has an UNKNOWN one."""
        unknown = values == UNKNOWN
        if not unknown.any():
            return self.total(core, values)
        return np.where(self.total(core[unknown]) > 0, np.nan, self.total(core, np.where(unknown, 0, values)))

    def some(self, which: np.ndarray) -> np.ndarray:
        """Which cores have one of the slices, (cores,) bool."""
        return np.asarray(self.total(self.core[which]) > 0)

    def union(self, which: np.ndarray) -> np.ndarray:
        """Cycles in which one of the slices was under way."""
        which = which & (self.start >= 0)
        return union_lengths(self.core[which], self.start[which], self.end[which], self.cores).astype(np.float64)

    @cached_property
    def covered(self) -> tuple[np.ndarray, np.ndarray]:
        """Working and waiting cycles of every lane, (lanes, cores) each."""
        found = self._busy or busy(self.timeline)
        return found.work.astype(np.float64), found.wait.astype(np.float64)
