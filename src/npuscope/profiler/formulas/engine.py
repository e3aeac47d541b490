"""Columns from counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from npuscope.profiler.formulas.column import Column
from npuscope.profiler.formulas.functions import Basis
from npuscope.trace.schema import CoreType


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a metric table before their columns are computed, each (rows,).

    `events` maps an event number to its counts, `paths` a way between two memories (``UB_GM``) to the bytes that took
    it, NaN where not known; what is missing is not known anywhere. `cores` is the kind of core of each row, None where
    there is but one kind. `peaks` are GB/s of one core by path (``gm_to_ub``).
    """

    basis: Basis
    events: Mapping[int, np.ndarray]
    paths: Mapping[str, np.ndarray] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    cores: np.ndarray | None = None

    def named(self, name: str) -> np.ndarray | float:
        """What a name in a formula stands for."""
        if name == "cycles":
            return self.basis.cycles
        if "_to_" in name:
            return self.peaks.get(name, np.nan)
        found = self.events.get(int(name[1:])) if name[0] == "e" else self.paths.get(name)
        return np.full(self.basis.cycles.shape, np.nan) if found is None else found


def evaluate(columns: Iterable[Column], rows: Rows, detail: bool = False) -> list[tuple[Column, np.ndarray]]:
    """The figures of each column, (rows,) float64, NaN for cells that do not apply. Columns that must be asked for are
    left out unless `detail`, sparse ones where they have nothing but zeros."""
    functions = rows.basis.functions()
    found = []
    for column in columns:
        if column.asked and not detail:
            continue
        values = column.formula({name: rows.named(name) for name in column.formula.names}, functions)
        values = np.broadcast_to(values, rows.basis.cycles.shape)
        if column.rows is not None and rows.cores is not None:
            values = np.where(rows.cores == int(column.rows), values, np.nan)
        if not column.sparse or np.nan_to_num(values).any():
            found.append((column, values))
    return found


def core_kinds(kinds: Iterable[CoreType]) -> np.ndarray:
    """`Rows.cores` from the kinds of core themselves."""
    return np.array([int(kind) for kind in kinds], np.int64)
