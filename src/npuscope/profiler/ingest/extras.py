"""Other files that simulators leave, as tables: counters, accesses to memory, queues, stages of the control unit
(opprof.md 4.7). They are no part of a timeline and are read when asked for.

A kind of file is one :class:`Reader` in `READERS`; more can be added to that list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from npuscope.errors import UserError
from npuscope.profiler.ingest.files import LARGEST
from npuscope.profiler.table import Cell, Table

Row = tuple[Cell, ...]
PART = r"(?:\.\d+)?"
COUNTER = re.compile(r"^(\d+)\s*:\s*(.+?)\s*\|\s*(-?\d+)\s*$", re.MULTILINE)
STAGE = re.compile(
    r"^\[info\]\s+(\d+):\s+\[([^\]]+)\]\s+instr\.name=(\S+)\s+instr\.pc=(?:0x)?([0-9a-fA-F]+)\s+instr\.id=(\d+)",
    re.MULTILINE,
)
QUEUE = re.compile(
    r"^\[info\]\s+(\d+):?\s+\[(Push Instr|pop Instr|RETIRE INSTR)\]\s+(?:instr\.)?name=(\S+)\s+(?:instr\.)?pc=(?:0x)?"
    r"([0-9a-fA-F]+)\s+(?:instr\.)?id=(\d+)",
    re.MULTILINE,
)
ACCESS = re.compile(
    r"^\[info\]\s+\[(?P<cycle>\d+)\]\s*(?P<name>[^,\n]+),\s*pc:\s*0x(?P<pc>[0-9a-fA-F]+),\s*id:\s*(?P<id>\d+)"
    r"|Address\s+(?P<address>[0-9a-fA-F]+)\s*=\s*\[(?P<data>[0-9a-fA-F \t]+)\]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Reader:
    """`name` of the table, `files` that it reads, its `columns` after ``file``, and the rows of one file's text."""

    name: str
    files: re.Pattern[str]
    columns: tuple[str, ...]
    rows: Callable[[str], Iterator[Row]]


def counters(text: str) -> Iterator[Row]:
    """``<index> : <name> | <value>``."""
    for index, name, value in COUNTER.findall(text):
        yield int(index), name, int(value)


def stages(text: str) -> Iterator[Row]:
    """Where the control unit has an instruction."""
    for cycle, stage, name, pc, ident in STAGE.findall(text):
        yield int(cycle), stage, name, f"0x{pc.lower()}", int(ident)


def queue_events(text: str) -> Iterator[Row]:
    """Instructions that enter and leave queues."""
    for cycle, event, name, pc, ident in QUEUE.findall(text):
        yield int(cycle), event, name, f"0x{pc.lower()}", int(ident)


def accesses(text: str) -> Iterator[Row]:
    """What instructions read or write: the lines of addresses belong to the instruction above them."""
    owner: Row = (None, None, None, None)
    for match in ACCESS.finditer(text):
        if match["cycle"] is not None:
            owner = (int(match["cycle"]), match["name"].strip(), f"0x{match['pc'].lower()}", int(match["id"]))
        else:
            yield *owner, f"0x{match['address'].lower()}", "".join(match["data"].split()).lower()


READERS: list[Reader] = [
    Reader(
        "VendorCounters",
        re.compile(rf".*(?:perf_pmu{PART}\.log|perf_pmu_per_vf{PART}\.log|summary_log)"),
        ("index", "name", "value"),
        counters,
    ),
    Reader("ControlStages", re.compile(rf".*ccu_log{PART}\.dump"), ("cycle", "stage", "instr", "pc", "id"), stages),
    Reader(
        "QueueEvents",
        re.compile(rf".*(?:issque|OOO){PART}\.dump"),
        ("cycle", "event", "instr", "pc", "id"),
        queue_events,
    ),
    Reader(
        "MemoryAccesses",
        re.compile(rf".*(?:rd_log|wr_log|rvec_pv){PART}\.dump"),
        ("cycle", "instr", "pc", "id", "address", "data"),
        accesses,
    ),
]


def read_extras(folder: Path) -> list[Table]:
    """A table for each reader that finds a row in `folder`. Raises UserError where a file cannot be read."""
    found = []
    for reader in READERS:
        rows: list[Row] = []
        for file in sorted(folder.iterdir()):
            if reader.files.fullmatch(file.name) and file.is_file():
                rows += ((file.name, *row) for row in reader.rows(_text(file)))
        if rows:
            found.append(Table(reader.name, ("file", *reader.columns), tuple(rows)))
    return found


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST:
            raise UserError(f"{file} is larger than {LARGEST >> 30} GB and is not read")
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
