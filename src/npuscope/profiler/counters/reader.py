"""What the rules of the events are made of: cycles and instructions, core by core."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from npuscope.profiler.busy import Busy
from npuscope.profiler.counters.flows import Flows
from npuscope.profiler.counters.sums import Sums
from npuscope.profiler.counters.units import Units
from npuscope.profiler.counters.vector_kind import LANES_310P, LANES_A2, is_integer, is_special
from npuscope.profiler.signals import is_signal
from npuscope.profiler.waits import is_wait
from npuscope.trace.timeline import UNKNOWN, Lane, Source, Step, Timeline
from npuscope.trace.values import among

VECTOR_LANES = (Lane.VECTOR, Lane.RVECEX, Lane.RVECLD, Lane.RVECST, Lane.RVECLP, Lane.RVECSU)
"""The vector unit; all but the first exist in the vendor's logs of A5 only."""
SCALAR_LANES = (Lane.SCALAR, Lane.SCALARLDST)


class Reader:
    """A timeline as counters see it; `columns` is the set of events. Every method gives an array of (cores,) float64,
    NaN on a core where the timeline does not tell."""

    def __init__(self, timeline: Timeline, columns: str, found: Busy | None = None) -> None:
        self.timeline = timeline
        self.sums = Sums(timeline, found)
        self.cores = self.sums.cores
        self.units = Units(self.sums, LANES_310P if columns == "310P" else LANES_A2)
        self.flows = Flows(self.sums)

    @cached_property
    def total_cycles(self) -> np.ndarray:
        """From the first to the last cycle of each core; of its instructions where the cores' table does not tell."""
        start, end = self.timeline.core("start"), self.timeline.core("end")
        if start.size == self.cores and (start != UNKNOWN).all() and (end != UNKNOWN).all():
            return (end - start).astype(np.float64)
        first = np.full(self.cores, np.iinfo(np.int64).max)
        last = np.zeros(self.cores, np.int64)
        known = self.sums.start >= 0
        np.minimum.at(first, self.sums.core[known], self.sums.start[known])
        np.maximum.at(last, self.sums.core[known], self.sums.end[known])
        return np.maximum(last - first, 0).astype(np.float64)

    def busy(self, *lanes: Lane) -> np.ndarray:
        """Cycles in which any of the lanes was at work; waits are no work."""
        if len(lanes) == 1:
            return self.sums.covered[0][lanes[0]]
        return self.sums.union(self.sums.on(lanes) & ~self.sums.waits)

    def waiting(self, *lanes: Lane) -> np.ndarray:
        """Cycles in which the lanes stood waiting."""
        if len(lanes) == 1:
            return self.sums.covered[1][lanes[0]]
        return self.sums.union(self.sums.on(lanes) & self.sums.waits)

    def instructions(self, *lanes: Lane) -> np.ndarray:
        """Instructions that the lanes carried out; flags and waits are none."""
        return self.sums.total(self.sums.core[self.sums.on(lanes) & self.sums.works])

    def special_busy(self) -> np.ndarray:
        """Cycles of the special function unit."""
        return self._busy_steps(Lane.VECTOR, lambda step: is_special(step.text))

    def cube_busy(self, integer: bool) -> np.ndarray:
        """Cycles in which the cube multiplied integers, or floating-point numbers."""

        def fits(step: Step) -> bool | None:
            kind = is_integer(step.dtype)
            return None if kind is None else kind is integer

        return self._busy_steps(Lane.CUBE, fits)

    def simt_busy(self) -> np.ndarray:
        """Cycles in which a SIMT instruction was under way."""
        return self.sums.union(self.timeline.slice("warp") >= 0)

    def none_without_simt(self) -> np.ndarray:
        """0 on cores without SIMT instructions; what others did is not known."""
        return np.where(self.sums.some(self.timeline.slice("warp") >= 0), np.nan, 0.0)

    def lost(self, column: str) -> np.ndarray:
        """Cycles lost to conflicts in UB, ``bank_group`` or ``bank``."""
        return self.sums.known_total(self.sums.core, self.timeline.slice(column))

    def unmodelled(self) -> np.ndarray:
        """A cost that the model's device does not have: 0; not known of other sources."""
        return np.full(self.cores, 0.0 if self.timeline.source is Source.MODEL else np.nan)

    def scalar(self, column: str) -> np.ndarray:
        """A column of the cores' table."""
        values = self.timeline.core(column)
        if values.size != self.cores:
            return np.full(self.cores, np.nan)
        return np.where(values == UNKNOWN, np.nan, values.astype(np.float64))

    def scalar_busy(self) -> np.ndarray:
        """Busy cycles of the scalar unit: those of the cores' table, else those that its instructions cover."""
        told = self.scalar("scalar_busy")
        return np.where(np.isnan(told), self.busy(*SCALAR_LANES), told)

    def scalar_wait(self) -> np.ndarray:
        """Cycles in which the scalar unit waited: those of the cores' table, else those of its wait instructions."""
        told = self.scalar("scalar_wait")
        return np.where(np.isnan(told), self.waiting(*SCALAR_LANES), told)

    def wait_for_event(self, number: int) -> np.ndarray:
        """Cycles in which the scalar unit waited for flag `number`; only waits that were let go have a number."""
        sums, (waits, flags) = self.sums, self._scalar_waits
        mine = waits[flags == number]
        return sums.total(sums.core[mine], sums.end[mine] - sums.start[mine])

    @cached_property
    def _scalar_waits(self) -> tuple[np.ndarray, np.ndarray]:
        """The waits of the scalar unit that were let go, and their flags' numbers, (waits,) each."""
        target = self.timeline.edge("target")
        mine = np.flatnonzero(among(self.sums.lane[target], SCALAR_LANES))
        return target[mine], self.timeline.edge("number")[mine]

    def _busy_steps(self, lane: Lane, test: Callable[[Step], bool | None]) -> np.ndarray:
        """Cycles in which work of the lane's steps that pass a test was under way; NaN on a core with work that the
        test cannot tell."""

        def verdict(step: Step) -> bool | None:
            return test(step) if step.lane is lane and not is_wait(step) and not is_signal(step) else False

        unsure = self.sums.some(self.sums.of_steps(lambda step: verdict(step) is None))
        return np.where(unsure, np.nan, self.sums.union(self.sums.of_steps(verdict)))
