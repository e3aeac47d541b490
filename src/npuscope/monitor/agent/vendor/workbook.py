"""A workbook of what was collected: one sheet a kind, with the vendor's headings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from npuscope.monitor.agent.vendor.kinds import ActivityKind
from npuscope.monitor.agent.vendor.records import MICROSECOND, Record

SUFFIX = ".xlsx"
MOST_ROWS = 1_048_576
"""Of a sheet, the heading's included: a limit of the file format."""
MODE = 0o640
_CALL = ("Name", "Start(us)", "End(us)", "Pid", "Tid", "Correlation ID", "Duration(us)")
HEADINGS: Mapping[ActivityKind, tuple[str, ...]] = {
    ActivityKind.API: _CALL,
    ActivityKind.AclAPI: _CALL,
    ActivityKind.NodeAPI: _CALL,
    ActivityKind.RuntimeAPI: _CALL,
    ActivityKind.Kernel: (
        "Name", "Start(us)", "End(us)", "Device ID", "Stream ID", "Correlation ID", "Type", "Duration(us)",
    ),
    ActivityKind.Communication: (
        "Name", "Start(us)", "End(us)", "Device ID", "Stream ID", "Count", "DataType", "CommName", "AlgType",
        "Correlation ID", "Duration(us)",
    ),
    ActivityKind.Marker: (
        "Name", "SourceKind", "Domain", "ID", "Start(us)", "End(us)", "Pid", "Tid", "Device ID", "Stream ID",
        "Duration(us)",
    ),
}  # fmt: skip


def write(path: str, records: Mapping[ActivityKind, Sequence[Record]]) -> None:
    """Write the workbook in place of what is at `path`, whole or not at all. All cells are text but the duration.

    Raises ImportError without XlsxWriter and OSError where the file cannot be written.
    """
    import xlsxwriter

    beside = Path(f"{path}.{os.getpid()}.part")
    options = {"constant_memory": True, "strings_to_numbers": False, "strings_to_formulas": False,
               "strings_to_urls": False}  # fmt: skip
    try:
        book = xlsxwriter.Workbook(str(beside), options)
        for kind, found in records.items():
            for name, part in sheets(kind.name, found):
                sheet = book.add_worksheet(name)
                sheet.write_row(0, 0, HEADINGS[kind])
                for row, record in enumerate(part, start=1):
                    sheet.write_row(row, 0, cells(record))
        try:
            book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise OSError(*error.args[0].args) from None
        os.chmod(beside, MODE)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def sheets(name: str, records: Sequence[Record]) -> Iterator[tuple[str, Sequence[Record]]]:
    """The sheets of one kind: one, and `Kernel 2` and so on where there are more rows than fit."""
    most = MOST_ROWS - 1
    for number, first in enumerate(range(0, max(len(records), 1), most), start=1):
        yield (name if number == 1 else f"{name} {number}"), records[first : first + most]


def cells(record: Record) -> list[Any]:
    """A record's row. The times are written in full: as numbers they would lose digits."""
    row: list[Any] = [str(value) for value in record.to_tuple()]
    at = record.names().index("startNs")
    row[at : at + 2] = [microseconds(record.startNs), microseconds(record.endNs)]
    return [*row, (record.endNs - record.startNs) / MICROSECOND]


def microseconds(time: int) -> str:
    """Nanoseconds as microseconds in decimal digits, as many as it takes, one at least: ``12.5`` for 12500."""
    whole, part = divmod(time, 1000)
    return f"{whole}.{f'{part:03d}'.rstrip('0') or '0'}"
