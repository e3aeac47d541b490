"""The columns of the hot-spot tables: figures of instructions or lines, core by core (opprof.md 2.8, 3.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.profiler.hot_spots import HotSpots, LineSpot, hit_rate
from npuscope.profiler.insight.plain import FLOAT, INTEGER, PERCENTAGE, decimals, wholes

ALL_CORES = "ALL"


@dataclass(frozen=True, slots=True)
class Column:
    """`values` are (rows, cores); `kind` is the viewer's number for what they are."""

    name: str
    kind: int
    values: np.ndarray

    @property
    def known(self) -> bool:
        """Whether any figure says something."""
        return bool((~np.isnan(self.values)).any() if self.kind in (FLOAT, PERCENTAGE) else (self.values >= 0).any())

    def rows(self) -> list[list[Any]]:
        """All rows as the viewer takes them."""
        found: list[list[Any]] = (decimals if self.kind in (FLOAT, PERCENTAGE) else wholes)(self.values)
        return found


def instruction_columns(spots: HotSpots, *, merged: bool) -> list[Column]:
    """The columns of instructions; `merged` gives one for all cores together, figures of lines added up and others by
    their worst (opprof.md 2.5). Columns of which nothing is known are left out."""
    add = _added if merged else _apart
    worst = _greatest if merged else _apart
    hits, misses = add(spots.hits), add(spots.misses)
    least = _least if merged else _apart
    columns = [
        Column("Instructions Executed", INTEGER, add(spots.executed)),
        Column("Cycles", INTEGER, add(spots.cycles)),
        Column("Process Bytes", INTEGER, add(spots.bytes)),
        Column("L2Cache Hit Rate", PERCENTAGE, hit_rate(hits, misses)),
        Column("Vector Utilization Percentage", PERCENTAGE, least(spots.utilisation)),
        Column("UB Read Conflict", INTEGER, worst(spots.read_conflict)),
        Column("UB Write Conflict", INTEGER, worst(spots.write_conflict)),
        Column("ICacheCycles", INTEGER, add(spots.fetching)),
        Column("CcuCycles", INTEGER, add(spots.controlling)),
        Column("ScalarCycles", INTEGER, add(spots.scalar)),
    ]
    return [column for column in columns if column.known]


def line_columns(lines: list[LineSpot], *, merged: bool) -> list[Column]:
    """The columns of source lines."""

    def table(name: str) -> np.ndarray:
        rows = np.stack([getattr(line, name) for line in lines])
        return _added(rows) if merged else rows

    if not lines:
        return []
    columns = [
        Column("Instructions Executed", INTEGER, table("executed")),
        Column("Cycles", INTEGER, table("cycles")),
        Column("Process Bytes", INTEGER, table("bytes")),
        Column("L2Cache Hit Rate", PERCENTAGE, hit_rate(table("hits"), table("misses"))),
    ]
    return [column for column in columns if column.known]


def _apart(values: np.ndarray) -> np.ndarray:
    return values


def _added(values: np.ndarray) -> np.ndarray:
    known = (values >= 0).any(1, keepdims=True)
    return np.where(known, values.clip(0).sum(1, keepdims=True), -1)


def _greatest(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.max(1, keepdims=True, initial=-1))


def _least(values: np.ndarray) -> np.ndarray:
    filled = np.where(np.isnan(values), np.inf, values).min(1, keepdims=True, initial=np.inf)
    return np.where(np.isinf(filled), np.nan, filled)
