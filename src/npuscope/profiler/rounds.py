"""How often an application would run on a card until all counters are read (opprof.md 1.6, 5.4)."""

from __future__ import annotations

from npuscope.profiler.formulas import table_columns
from npuscope.profiler.selection import A2, A5, Selection
from npuscope.trace.schema import CoreType

COUNTERS = 8
COUNTERS_A5 = 10
"""Events that a core counts in one pass."""

INSTRUMENTED = ("MemoryDetail", "PcSampling", "PipeTimeline", "InstrTimeline", "Source")
"""Groups that need a pass of an instrumented kernel each."""

ALWAYS_A5 = 2
"""Passes that A5 adds in any case: operands and warps."""


def rounds(selection: Selection, kind: str) -> int:
    """Runs of the application that its counters need on a kind of chip, at least one. Both kinds of cores count in the
    same passes."""
    columns = [column for name, table in table_columns(kind).items() if name in selection.tables for column in table]
    events = max(
        len({event for column in columns if column.rows in (None, core) and not column.sparse
             for event in column.formula.events})
        for core in CoreType
    )  # fmt: skip
    passes = -(-events // (COUNTERS_A5 if kind == A5 else COUNTERS))
    passes += sum(group in selection.groups or (group == "Source" and "PcSampling" in selection.groups)
                  for group in INSTRUMENTED)  # fmt: skip
    passes += ALWAYS_A5 if kind == A5 else int(kind == A2 and "L2Cache" in selection.tables)
    return max(passes, 1)
