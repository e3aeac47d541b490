"""A table of figures: what writers write and pages show."""

from __future__ import annotations

from dataclasses import dataclass

Cell = str | int | float | None
"""None is a cell that does not apply (``NA`` in a CSV file)."""


@dataclass(frozen=True, slots=True)
class Table:
    """`name` is that of the file without its ending, ``PipeUtilization``; every row has a cell for each column."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> list[Cell]:
        """The cells of one column, top down."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]
