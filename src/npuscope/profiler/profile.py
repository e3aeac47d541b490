"""One launch's figures, each computed when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from npuscope.npu.chip import Chip
from npuscope.trace.timeline import Timeline

if TYPE_CHECKING:
    from npuscope.profiler.advice.advice import Advice
    from npuscope.profiler.advice.engine import Rule
    from npuscope.profiler.busy import Busy, Working
    from npuscope.profiler.charts.cache_map import CacheMap
    from npuscope.profiler.charts.compute_load import ComputeLoad
    from npuscope.profiler.charts.heat_map import HeatMap
    from npuscope.profiler.charts.occupancy import Occupancy
    from npuscope.profiler.charts.roofline import Roofline
    from npuscope.profiler.counters import Counters
    from npuscope.profiler.critical_path import CriticalPath
    from npuscope.profiler.hot_spots import HotSpots
    from npuscope.profiler.instruction_timeline.placed import Placed
    from npuscope.profiler.summary import Summary
    from npuscope.profiler.table import Table


@dataclass
class Profile:
    """What is known of one launch on one chip. `rules` are the user's, which advise beside ours."""

    timeline: Timeline
    chip: Chip
    rules: tuple[Rule, ...] = ()

    @cached_property
    def busy(self) -> Busy:
        """Working and waiting cycles of every pipe and core."""
        from npuscope.profiler.busy import busy

        return busy(self.timeline)

    @cached_property
    def working(self) -> Working:
        """What of each pipe ran at the same time as another."""
        from npuscope.profiler.busy import Working

        return Working(self.timeline)

    @cached_property
    def critical_path(self) -> CriticalPath:
        """The chain of instructions that made the launch last as long as it did."""
        from npuscope.profiler.critical_path import critical_path

        return critical_path(self.timeline)

    @cached_property
    def placed(self) -> Placed:
        """Where and how long each slice is drawn, as all files have it."""
        from npuscope.profiler.instruction_timeline.drawn import drawn
        from npuscope.profiler.instruction_timeline.placed import Placed

        return Placed(self.timeline, drawn(self.timeline))

    @cached_property
    def summary(self) -> Summary:
        """Time, bound, speed of light and the lines on the critical path."""
        from npuscope.profiler.summary import summarise

        return summarise(self)

    @cached_property
    def counters(self) -> Counters:
        """Virtual counters of every core, with the vendor's event numbers."""
        from npuscope.profiler.counters import count

        return count(self.timeline, self.chip, self.busy)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The metric tables by name, those that the chip has: ``OpBasicInfo``, ``PipeUtilization`` and so on."""
        from npuscope.profiler.metrics import metric_tables

        return metric_tables(self.timeline, self.chip, self.counters)

    @cached_property
    def hot_spots(self) -> HotSpots:
        """Cycles by source line and by instruction."""
        from npuscope.profiler.hot_spots import hot_spots

        return hot_spots(self.timeline)

    @cached_property
    def roofline(self) -> Roofline:
        """How fast it computes against what its memories and units allow."""
        from npuscope.profiler.charts.roofline import roofline

        return roofline(self.timeline, self.chip, self.counters)

    @cached_property
    def heat_map(self) -> HeatMap:
        """What each way between two memories carried, block by block."""
        from npuscope.profiler.charts.heat_map import heat_map

        return heat_map(self.timeline, self.chip, self.counters)

    @cached_property
    def compute_load(self) -> ComputeLoad:
        """How busy each pipe of each core was, and the figures behind it."""
        from npuscope.profiler.charts.compute_load import compute_load

        return compute_load(self.timeline, self.chip, self.counters)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Whether the cores share the work evenly."""
        from npuscope.profiler.charts.occupancy import occupancy

        return occupancy(self.timeline, self.chip, self.counters)

    @cached_property
    def cache_map(self) -> CacheMap | None:
        """What became of each line of the L2 cache; None where that is not known."""
        from npuscope.profiler.charts.cache_map import cache_map

        return cache_map(self.timeline, self.chip)

    @cached_property
    def advice(self) -> list[Advice]:
        """What to do, the greatest gain first."""
        from npuscope.profiler.advice.engine import advise

        return advise(self, self.rules)
