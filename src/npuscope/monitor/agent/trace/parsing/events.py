"""The events of a trace as PyTorch writes them, as columns.

The file is read in pieces that end between two events, so that it never stands in memory as Python objects as a whole.
Times become nanoseconds of the wall clock: `baseTimeNanoseconds` of the file plus the event's own microseconds.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.names import Names

Column = NDArray[Any]
Record = dict[str, Any]

PIECE = 128 << 10
"""Bytes that are parsed at once: what becomes of them stays in the processor's cache."""
OPENING = b'"traceEvents": ['
BETWEEN = b"\n  },\n  {"
"""Between two events, as Kineto lays them out; text in JSON holds no line breaks."""
MEMORY = "[memory]"
NOTHING: Record = {}
ADDRESS = 2**63 - 1
"""Addresses that a signed number holds; the highest bit tells none apart."""


@dataclass(frozen=True)
class Slices:
    """Everything that takes time, one row each. Numbers that do not apply are -1 (`sequence`, `external`, ...)."""

    category: Column
    """Number in `Trace.categories`."""
    name: Column
    """Number in `Trace.names`, as of all texts."""
    process: Column
    thread: Column
    """For work of a device: the device, and its stream."""
    start: Column
    end: Column
    external: Column
    """Which operator launched it."""
    correlation: Column
    """Of a launch and what it launched."""
    sequence: Column
    """Of an operator and its counterpart in the backward pass."""
    forward: Column
    """Thread number of the forward pass, in an operator of the backward pass."""
    shapes: Column
    types: Column

    def __len__(self) -> int:
        return len(self.start)

    def where(self, keep: Column) -> Slices:
        """The rows for which `keep` (bool, or indices) says so."""
        return Slices(**{name: column[keep] for name, column in vars(self).items()})


@dataclass(frozen=True)
class Allocations:
    """Memory taken (bytes above 0) and given back, one row each."""

    time: Column
    process: Column
    thread: Column
    bytes: Column
    address: Column
    device_type: Column
    """0: the host."""
    device: Column
    allocated: Column
    """In all, afterwards."""
    reserved: Column

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Flows:
    """Ends of the arrows from forward to backward operators."""

    number: Column
    begins: Column
    thread: Column
    time: Column


@dataclass(frozen=True)
class Piece:
    """A part of the file, and the rows of the slices that it gave."""

    first: int
    last: int
    first_row: int
    last_row: int


@dataclass(frozen=True)
class Trace:
    """What a file holds."""

    header: Record
    """All but the events."""
    names: Names
    categories: Names
    slices: Slices
    memory: Allocations
    flows: Flows
    details: dict[int, Record]
    """What else is known of a collective, by its row."""
    pieces: list[Piece]
    unread: int
    """Bytes that could not be read, because no JSON stood there."""


def read(path: Path) -> Trace:
    """The trace in a file. Raises OSError, and ValueError when it is no trace."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        first = text.find(OPENING)
        last = text.rfind(b"]", max(0, len(text) - 65536))
        if first < 0 or last < first:
            raise ValueError(f"{path.name} holds no events")
        first += len(OPENING)
        header = orjson.loads(text[:first] + text[last:])
        reader = _Reader(int(header.get("baseTimeNanoseconds", 0)))
        unread = 0
        pieces = []
        for begin, end in _pieces(text, first, last):
            records, lost = records_of(text[begin:end])
            unread += lost
            rows = reader.rows
            reader.add(records)
            pieces.append(Piece(begin, end, rows, reader.rows))
    return reader.trace(header, pieces, unread)


def records_of(piece: bytes) -> tuple[list[Record], int]:
    """The events in a part of a file, and how many bytes could not be read."""
    try:
        return orjson.loads(b"[" + piece + b"]"), 0
    except orjson.JSONDecodeError:
        return _one_by_one(piece)


def is_slice(record: Record) -> bool:
    """Whether an event becomes a row of the slices; spans of the profiler itself, which have no process, do not."""
    return record.get("ph") == "X" and isinstance(record.get("pid"), int)


def _pieces(text: mmap.mmap, first: int, last: int) -> Iterator[tuple[int, int]]:
    while first < last:
        end = text.find(BETWEEN, min(first + PIECE, last), last)
        if end < 0:
            yield first, last
            return
        end += BETWEEN.index(b",")
        yield first, end
        first = end + 1


def _one_by_one(piece: bytes) -> tuple[list[Record], int]:
    """The events of a piece that are JSON, and how many bytes are not."""
    found, lost = [], 0
    parts = piece.split(BETWEEN)
    for number, part in enumerate(parts):
        whole = (b"{" if number else b"") + part + (b"}" if number < len(parts) - 1 else b"")
        try:
            found.append(orjson.loads(whole))
        except orjson.JSONDecodeError:
            try:
                found.append(orjson.loads(whole.decode(errors="replace")))
            except orjson.JSONDecodeError:
                lost += len(whole)
    return found, lost


class _Reader:
    """Gathers columns, piece by piece."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.names = Names()
        self.categories = Names()
        self.parts: dict[str, list[dict[str, Column]]] = {"slices": [], "memory": [], "flows": []}
        self.details: dict[int, Record] = {}
        self.rows = 0

    def add(self, records: Sequence[Record]) -> None:
        """Take the events of a piece."""
        slices = [one for one in records if one["ph"] == "X" and type(one["pid"]) is int]
        if slices:
            self.parts["slices"].append(self._slices(slices))
        if len(slices) == len(records):
            return
        rest = [one for one in records if one["ph"] != "X"]
        if memory := [one for one in rest if one["name"] == MEMORY and "args" in one]:
            self.parts["memory"].append(self._memory(memory))
        if flows := [one for one in rest if one.get("cat") == "fwdbwd"]:
            self.parts["flows"].append(self._flows(flows))

    def trace(self, header: Record, pieces: list[Piece], unread: int) -> Trace:
        """All of it."""
        return Trace(
            header,
            self.names,
            self.categories,
            Slices(**self._joined("slices", Slices)),
            Allocations(**self._joined("memory", Allocations)),
            Flows(**self._joined("flows", Flows)),
            self.details,
            pieces,
            unread,
        )

    def _slices(self, records: Sequence[Record]) -> dict[str, Column]:
        # Lists, not generators, and no function per event: this is where the time goes.
        args = [one.get("args", NOTHING) for one in records]
        get = [more.get for more in args]
        start = self._times([one["ts"] for one in records])
        self._keep_details(records, args)
        self.rows += len(records)
        return {
            "category": self.categories.numbers([one.get("cat", "") for one in records]),
            "name": self.names.numbers([one["name"] for one in records]),
            "process": np.array([one["pid"] for one in records], np.int64),
            "thread": _whole([one["tid"] for one in records]),
            "start": start,
            "end": start + _nanoseconds([one.get("dur", 0) for one in records]),
            "external": _whole([one("External id", -1) for one in get]),
            "correlation": _whole([one("correlation", -1) for one in get]),
            "sequence": _whole([one("Sequence number", -1) for one in get]),
            "forward": _whole([one("Fwd thread id", -1) for one in get]),
            "shapes": self.names.lists([one("Input Dims") for one in get]),
            "types": self.names.lists([one("Input type") for one in get]),
        }

    def _keep_details(self, records: Sequence[Record], args: Sequence[Record]) -> None:
        for place, more in enumerate(args):
            if "Collective name" in more:
                self.details[self.rows + place] = more | {"name": records[place]["name"]}

    def _memory(self, records: Sequence[Record]) -> dict[str, Column]:
        args = [one["args"] for one in records]
        return {
            "time": self._times([one["ts"] for one in records]),
            "process": _whole([one["pid"] for one in records]),
            "thread": _whole([one["tid"] for one in records]),
            "bytes": _whole([more["Bytes"] for more in args]),
            "address": np.array([more["Addr"] & ADDRESS for more in args], np.int64),
            "device_type": _whole([more["Device Type"] for more in args]),
            "device": _whole([more["Device Id"] for more in args]),
            "allocated": _whole([more.get("Total Allocated", -1) for more in args]),
            "reserved": _whole([more.get("Total Reserved", -1) for more in args]),
        }

    def _flows(self, records: Sequence[Record]) -> dict[str, Column]:
        return {
            "number": _whole([one["id"] for one in records]),
            "begins": np.array([one["ph"] == "s" for one in records]),
            "thread": _whole([one["tid"] for one in records]),
            "time": self._times([one["ts"] for one in records]),
        }

    def _times(self, microseconds: list[float]) -> Column:
        return _nanoseconds(microseconds) + self.base

    def _joined(self, what: str, kind: type) -> dict[str, Column]:
        parts = self.parts[what]
        if parts:
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return {name: np.zeros(0, bool if name == "begins" else np.int64) for name in kind.__annotations__}


def _nanoseconds(microseconds: list[float]) -> Column:
    """Whole nanoseconds: the file has three digits behind the point."""
    return np.rint(np.array(microseconds, np.float64) * 1000).astype(np.int64)


def _whole(values: list[Any]) -> Column:
    """A column of numbers; what is none (a device's name) is -1."""
    try:
        return np.array(values, np.int64)
    except (ValueError, TypeError, OverflowError):
        return np.array([value if isinstance(value, int) and abs(value) < 2**63 else -1 for value in values], np.int64)
