"""One column of a metric table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npuscope.profiler.formulas.formula import Formula
from npuscope.profiler.table import Cell
from npuscope.trace.schema import CoreType


@dataclass(frozen=True)
class Column:
    """`name` is the vendor's, `text` its formula. `rows` are those it has figures on (None: all). `asked` says that it
    is there only when it is asked for, `sparse` that it is there only where some figure is not 0."""

    name: str
    text: str
    rows: CoreType | None = None
    asked: bool = False
    sparse: bool = False

    @cached_property
    def formula(self) -> Formula:
        """The formula, parsed. ValueError where it is none."""
        return Formula(self.text)

    @cached_property
    def unit(self) -> str:
        """``us``, ``GB/s``, ``KB``, ``%``, ``ratio`` (0..1), ``cycles`` or ``count``."""
        if bracket := re.search(r"\(([^)]*)\)", self.name):
            return bracket[1]
        if self.name.endswith(("_ratio", "_rate")):
            return "ratio"
        return "cycles" if self.name.endswith("cycles") else "count"

    def cells(self, values: np.ndarray) -> list[Cell]:
        """What is written for `values`: whole numbers for counts and cycles, None for NaN."""
        whole = self.unit in ("count", "cycles")
        return [None if value != value else round(value) if whole else value for value in values.tolist()]
