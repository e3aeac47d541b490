"""The trace of one process on its way into a file: a pickled entry a batch, so that a kill costs the batch at hand."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from npuscope.cli.spool import entries
from npuscope.trace.file import TraceWriter
from npuscope.trace.footprint import FOOTPRINTS, Footprint, intern
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import ACCESS_COLUMNS, INSTRUCTION_COLUMNS, OPCODES, Fault

OF_LAUNCH = ("buffers", "explicit", "faults")
"""Lists of a batch that grow during a launch."""

GONE = "the process ended here"


@dataclass(slots=True)
class Entry:
    """A batch with what is new in the tables that it shares with the batches before it."""

    values: dict[str, Any]
    grown: dict[str, list[Any]]
    sites: list[Any]
    opcodes: list[str]
    footprints: list[Footprint]


class SpooledTrace:
    """A consumer that appends each batch to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None  # opened by the first batch
        self._known = dict.fromkeys((*OF_LAUNCH, "sites", "opcodes", "footprints"), 0)

    def write(self, batch: Batch) -> None:
        """Append one batch."""
        if batch.first == 0:
            self._known.update(dict.fromkeys(OF_LAUNCH, 0))
        lists = {name: getattr(batch, name) for name in OF_LAUNCH}
        rest = {
            item.name: getattr(batch, item.name)
            for item in fields(batch)
            if item.name not in OF_LAUNCH and item.name != "sites"
        }
        entry = Entry(
            rest, {name: self._new(name, values) for name, values in lists.items()}, self._new("sites", batch.sites),
            self._new("opcodes", OPCODES.names), self._new("footprints", FOOTPRINTS),
        )
        if self._file is None:
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 - lives as long as the process
        self._file.write(pickle.dumps(entry, pickle.HIGHEST_PROTOCOL))

    def close(self) -> None:
        """Nothing more comes."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _new(self, name: str, values: list[Any]) -> list[Any]:
        fresh = values[self._known[name] :]
        self._known[name] = len(values)
        return fresh


@dataclass(slots=True)
class _Tables:
    """What the entries of one process have in common, as it grows."""

    sites: list[Any] = field(default_factory=list)
    opcodes: list[int] = field(default_factory=list)
    footprints: list[int] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    def batch(self, entry: Entry) -> Batch:
        """The batch of an entry, in the numbers of this process."""
        values = dict(entry.values)
        if values["first"] == 0:
            self.lists = {name: [] for name in OF_LAUNCH}
        for name, fresh in entry.grown.items():
            self.lists[name].extend(fresh)
        self.sites.extend(entry.sites)
        self.opcodes.extend(OPCODES.number(name) for name in entry.opcodes)
        self.footprints.extend(intern(shape) for shape in entry.footprints)
        _renumber(values["instruction"], INSTRUCTION_COLUMNS.index("opcode"), self.opcodes)
        _renumber(values["access"], ACCESS_COLUMNS.index("footprint"), self.footprints)
        values.update(self.lists, sites=self.sites)
        return Batch(**values)


def _renumber(table: np.ndarray, row: int, numbers: list[int]) -> None:
    """Put this process's numbers in place of the writer's; negative ones mean something else and stay."""
    if table.shape[1] and numbers:
        known = table[row] >= 0
        table[row, known] = np.array(numbers, np.int64)[table[row, known]]


def read_spooled(path: Path) -> Iterator[Batch]:
    """The batches of one process. A launch that its process did not live to finish ends with a fault that says so."""
    tables = _Tables()
    held: Batch | None = None
    for entry in entries(path):
        if held is not None:
            yield held
        held = tables.batch(entry)
    if held is None:
        return
    if not held.last and not held.closing:
        fault = Fault("stopped", held.first + held.instruction.shape[1] - 1, -1, 0, {"error": GONE})
        held = replace(held, last=True, faults=[*held.faults, fault])
    yield held


def write_trace(folder: Path, writer: TraceWriter) -> int:
    """Put the traces of all processes of a run into one file, launches numbered through; returns how many launches."""
    launches = 0
    for path in sorted(folder.glob("*.trace")):
        first = launches
        for batch in read_spooled(path):
            if not batch.closing:
                launches += batch.first == 0
                batch.launch.index += first
            writer.write(batch)
    return launches
