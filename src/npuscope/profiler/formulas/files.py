"""The column sets: one file each, a table of columns for each metric table."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from npuscope.profiler.formulas.column import Column
from npuscope.trace.schema import CoreType

SETS = ("A2", "A5", "310P")
_ROWS = {"aic": CoreType.AIC, "aiv": CoreType.AIV}
_KEYS = {"formula", "rows", "when", "drop"}


@cache
def table_columns(columns: str) -> dict[str, tuple[Column, ...]]:
    """The columns of every metric table of a set ("A2", "A5", "310P"), by the table's name, in the vendor's order."""
    text = files("npuscope.profiler.formulas").joinpath(f"{columns.lower()}.toml").read_text(encoding="utf-8")
    return {
        table: tuple(_column(name, entry, columns) for name, entry in entries.items())
        for table, entries in tomllib.loads(text).items()
    }


def _column(name: str, entry: str | dict[str, Any], columns: str) -> Column:
    more = {"formula": entry} if isinstance(entry, str) else entry
    if unknown := more.keys() - _KEYS:
        raise ValueError(f"{columns}, {name}: unknown keys: {', '.join(sorted(unknown))}")
    rows = _ROWS.get(more.get("rows", name[:3])) if columns != "310P" else None
    return Column(name, more["formula"], rows, more.get("when") == "detail", more.get("drop") == "zero")
