"""The metric tables: formulas over virtual counters (opprof.md 2.2, 2.3)."""

from __future__ import annotations

from npuscope.npu.chip import Chip
from npuscope.profiler.counters import Counters
from npuscope.profiler.table import Table
from npuscope.trace.timeline import Timeline


def metric_tables(timeline: Timeline, chip: Chip, counters: Counters) -> dict[str, Table]:
    """Every table that the chip has, by name."""
    return {}
