"""Trace files: a zip of Arrow tables, one pair per batch, and one JSON document with everything else.

Layout: ``trace.json`` (schema version, opcode names, footprints, sites, and per batch its launch, first row, new
buffers and faults, and the host's events), ``instruction/N.arrow`` and ``access/N.arrow`` (columns as in the schema),
``explicit/N.arrow`` (starts of explicit footprints as lists). The file appears under its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, astuple, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import orjson

from npuscope.errors import UserError
from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint, intern
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import (
    ACCESS_COLUMNS,
    INSTRUCTION_COLUMNS,
    OPCODES,
    VERSION,
    Buffer,
    CoreInfo,
    CoreType,
    Fault,
    HostEvent,
    HostKind,
    Launch,
    Programs,
    Site,
    SourceFrame,
    Space,
)

MAGIC = b"npuscope trace"


class TraceWriter:
    """Writes batches as they come; a context manager that keeps the file only when the block ends well."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._temporary = self.path.with_name(f".{self.path.name}.part")
        self._zip = zipfile.ZipFile(self._temporary, "w", zipfile.ZIP_STORED)
        self._zip.comment = MAGIC
        self._batches: list[dict[str, Any]] = []
        self._launch = -1
        self._known = {"buffers": 0, "faults": 0, "explicit": 0}
        self._tables: list[list[Site]] = []  # one of sites for each process of the run
        self._whole = True

    def write(self, batch: Batch) -> None:
        """Append one batch. A batch that cannot be written leaves no file behind."""
        self._whole = False
        if batch.launch.index != self._launch:
            self._launch = batch.launch.index
            self._known = {"buffers": 0, "faults": 0, "explicit": 0}
        number = len(self._batches)
        self._zip.writestr(f"instruction/{number}.arrow", _table(INSTRUCTION_COLUMNS, batch.instruction))
        self._zip.writestr(f"access/{number}.arrow", _table(ACCESS_COLUMNS, batch.access))
        fresh = batch.explicit[self._known["explicit"] :]
        if fresh:
            self._zip.writestr(f"explicit/{number}.arrow", _lists(fresh))
        if not self._tables or self._tables[-1] is not batch.sites:
            self._tables.append(batch.sites)
        self._batches.append(
            {
                "sites": len(self._tables) - 1,
                "launch": _launch_json(batch.launch),
                "first": batch.first,
                "last": batch.last,
                "host": [astuple(event) for event in batch.host],
                "buffers": [_buffer_json(item) for item in batch.buffers[self._known["buffers"] :]],
                "faults": [_fault_json(item) for item in batch.faults[self._known["faults"] :]],
            }
        )
        self._known = {"buffers": len(batch.buffers), "faults": len(batch.faults), "explicit": len(batch.explicit)}
        self._whole = True

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        try:
            if kind is None and self._whole:
                self._zip.writestr("trace.json", orjson.dumps(self._document()))
                self._zip.close()
                os.replace(self._temporary, self.path)
        finally:
            if self._temporary.exists():
                with contextlib.suppress(OSError):  # a full disk is told once
                    self._zip.close()
                self._temporary.unlink(missing_ok=True)

    def _document(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "opcodes": OPCODES.names,
            "footprints": [
                [item.nbytes, item.loops, None if item.mask is None else item.mask.hex(), item.mask_rank]
                for item in FOOTPRINTS
            ],
            "sites": [[asdict(site) for site in table] for table in self._tables],
            "batches": self._batches,
        }


def is_trace(path: str | Path) -> bool:
    """Whether a file is a trace."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return False
            file.seek(-len(MAGIC), os.SEEK_END)
            return file.read() == MAGIC
    except OSError:
        return False


def read_batches(path: str | Path) -> Iterator[Batch]:
    """The batches of a trace file in order. Raises UserError for a file that is damaged or of another version."""
    try:
        with zipfile.ZipFile(path) as archive:
            document = orjson.loads(archive.read("trace.json"))
            if document["version"] != VERSION:
                raise UserError(f"{path}: trace version {document['version']}, this npuscope reads {VERSION}")
            yield from _batches(archive, document)
    except (zipfile.BadZipFile, KeyError, orjson.JSONDecodeError) as error:
        raise UserError(f"{path}: not a readable trace ({error})") from None


def _batches(archive: zipfile.ZipFile, document: dict[str, Any]) -> Iterator[Batch]:
    opcodes = np.array([OPCODES.number(name) for name in document["opcodes"]], np.int64)
    shapes = [
        intern(Footprint(nbytes, tuple(tuple(loop) for loop in loops), bytes.fromhex(mask) if mask else None, rank))
        for nbytes, loops, mask, rank in document["footprints"]
    ]
    footprints = np.array(shapes or [0], np.int64)
    tables = [
        [Site(item["name"], tuple(SourceFrame(**frame) for frame in item["frames"])) for item in table]
        for table in document["sites"]
    ]
    names = set(archive.namelist())
    launch: Launch | None = None
    buffers: list[Buffer] = []
    faults: list[Fault] = []
    explicit: list[Explicit] = []
    for number, entry in enumerate(document["batches"]):
        if launch is None or launch.index != entry["launch"]["index"]:
            launch = _launch(entry["launch"])
            buffers, faults, explicit = [], [], []
        buffers.extend(_buffer(item) for item in entry["buffers"])
        faults.extend(Fault(**item) for item in entry["faults"])
        if f"explicit/{number}.arrow" in names:
            explicit.extend(_read_lists(archive.read(f"explicit/{number}.arrow")))
        instruction = _read_table(archive.read(f"instruction/{number}.arrow"))
        row = INSTRUCTION_COLUMNS.index("opcode")
        instruction[row] = opcodes[instruction[row]]
        access = _read_table(archive.read(f"access/{number}.arrow"))
        row = ACCESS_COLUMNS.index("footprint")
        access[row] = np.where(access[row] >= 0, footprints[np.maximum(access[row], 0)], access[row])
        host = [HostEvent(serial, HostKind(kind), *rest) for serial, kind, *rest in entry["host"]]
        yield Batch(launch, entry["first"], instruction, access, buffers, explicit, tables[entry["sites"]], faults,
                    entry["last"], host)


def _table(names: tuple[str, ...], columns: np.ndarray) -> bytes:
    import pyarrow as pa

    whole = np.ascontiguousarray(columns, np.int64)
    arrays = [pa.Array.from_buffers(pa.int64(), whole.shape[1], [None, pa.py_buffer(row)]) for row in whole]
    return _stream(pa.table(arrays, names=names))


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _read_table(data: bytes) -> np.ndarray:
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    found = np.empty((table.num_columns, table.num_rows), np.int64)
    for row, column in enumerate(table.columns):  # by their buffers: to_numpy would import pandas where that is there
        first = 0
        for chunk in column.chunks:
            values = np.frombuffer(chunk.buffers()[1], np.int64, len(chunk), 8 * chunk.offset)
            found[row, first : first + len(chunk)] = values
            first += len(chunk)
    return found


def _lists(items: list[Explicit]) -> bytes:
    import pyarrow as pa

    starts = pa.array([item.starts for item in items], pa.list_(pa.int64()))
    return _stream(pa.table({"starts": starts, "nbytes": [item.nbytes for item in items]}))


def _read_lists(data: bytes) -> list[Explicit]:
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    return [
        Explicit(np.array(starts.as_py(), np.int64), nbytes.as_py())
        for starts, nbytes in zip(table["starts"], table["nbytes"], strict=True)
    ]


def _launch_json(launch: Launch) -> dict[str, Any]:
    plain = asdict(replace(launch, cores=()))
    grid = launch.cores.grid if isinstance(launch.cores, Programs) else None
    plain["cores"] = [(int(core.type), core.block, core.sub_block) for core in launch.cores] if grid is None else []
    plain["programs"] = grid
    plain["capacity"] = {space.name: size for space, size in launch.capacity.items()}
    return plain


def _launch(plain: dict[str, Any]) -> Launch:
    frame, programs = plain["frame"], plain.get("programs")
    cores = tuple(CoreInfo(CoreType(kind), block, half) for kind, block, half in plain["cores"])
    return Launch(
        plain["index"], plain["kernel"], plain["chip"], cores if programs is None else Programs(tuple(programs)),
        tuple(plain["grid"]), plain["arguments"], plain["options"], SourceFrame(**frame) if frame else None,
        plain["arch"], {Space[name]: size for name, size in plain["capacity"].items()}, plain.get("device", 0),
    )


def _buffer_json(buffer: Buffer) -> list[Any]:
    return [int(buffer.space), buffer.core, buffer.base, buffer.size, buffer.kind, buffer.name, buffer.dtype,
            list(buffer.shape), buffer.site, buffer.generation, buffer.writeable, buffer.undefined, buffer.block,
            list(buffer.strides)]


def _buffer(plain: list[Any]) -> Buffer:
    space, core, base, size, kind, name, dtype, shape, site, generation, writeable, undefined, block, *views = plain
    return Buffer(Space(space), core, base, size, kind, name, dtype, tuple(shape), site, generation, writeable,
                  tuple((start, end) for start, end in undefined), block, *map(tuple, views))


def _fault_json(fault: Fault) -> dict[str, Any]:
    return {"code": fault.code, "instruction": fault.instruction, "core": fault.core, "site": fault.site,
            "facts": dict(fault.facts)}
