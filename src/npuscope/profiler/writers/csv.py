"""Metric tables as CSV files (opprof.md 2.2), and back."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from pathlib import Path

from npuscope.errors import UserError
from npuscope.profiler.table import Cell, Table
from npuscope.profiler.writers.whole import whole

MISSING = "NA"
"""What is written for a cell that does not apply; files of other versions have ``N/A``."""


def table_text(table: Table, quoted: Collection[str] = ()) -> str:
    """A table as CSV: a line of column names, a line for each row; fractions with six decimals, whole numbers plain,
    ``NA`` for None. Text is quoted where it must be, in columns named in `quoted` always."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerow(table.columns)
    if quoted:
        always = [name in quoted for name in table.columns]
        for row in table.rows:
            cells = zip(row, always, strict=True)
            lines.write(",".join([_quote(_text(cell)) if quote else _plain(cell) for cell, quote in cells]) + "\n")
    else:
        csv.writer(lines, lineterminator="\n").writerows([_text(cell) for cell in row] for row in table.rows)
    return lines.getvalue()


def file_name(table: Table, suffix: str = "") -> str:
    """``PipeUtilization.csv``; with a suffix, the 17 digits of a moment, ``PipeUtilization_20260102030405678.csv``."""
    return f"{table.name}_{suffix}.csv" if suffix else f"{table.name}.csv"


def write_table(table: Table, folder: Path, suffix: str = "", quoted: Collection[str] = ()) -> Path:
    """Write a table into a folder and return the file. It is there whole or not at all, readable by its group."""
    path = folder / file_name(table, suffix)
    try:
        with whole(path) as file:
            file.write(table_text(table, quoted).encode())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def read_table(path: Path) -> Table:
    """A table from a file that this module or the vendor's profiler wrote; ``NA`` and ``N/A`` become None, numbers
    become numbers. UserError where it is no such file."""
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    lines = [line for line in lines if line]
    if not lines:
        raise UserError(f"cannot read {path}: it is empty")
    heads = tuple(name.strip() for name in lines[0])
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(heads):
            raise UserError(f"cannot read {path}: row {number} has {len(line)} cells for {len(heads)} columns")
    rows = tuple(tuple(_cell(text) for text in line) for line in lines[1:])
    return Table(path.stem.partition("_")[0], heads, rows)


def _text(cell: Cell) -> str:
    if cell is None:
        return MISSING
    return f"{cell:.6f}" if isinstance(cell, float) else str(cell)


def _plain(cell: Cell) -> str:
    text = _text(cell)
    return _quote(text) if any(letter in text for letter in ',"\r\n') else text


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _cell(text: str) -> Cell:
    text = text.strip()
    if text in (MISSING, "N/A", ""):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
