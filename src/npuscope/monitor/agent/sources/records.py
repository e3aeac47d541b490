"""The activity library's records to columns, a whole buffer at a time.

Records of all kinds lie behind each other. How long those of a kind are is learned from the library itself, once, at
the first record of the kind; the library's own walk is compared at the beginning of every buffer, and where it does not
agree, the library walks that buffer alone.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from npuscope.monitor.activity.batch import COLUMNS, Batch, Column
from npuscope.monitor.activity.kinds import APIS, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.mspti_code import KINDS, Walk
from npuscope.monitor.agent.sources.mspti_names import Memory, Names

# Fields by kind: the byte they begin at, and their form on the wire, as in the public header: w is 32 bits (all ones
# stands for none), q is 64 bits, t is the address of a text. A name with a dash is no column.
_API = {"start": (4, "q"), "end": (12, "q"), "process": (20, "w"), "thread": (24, "w"), "correlation": (28, "q"),
        "name": (36, "t")}  # fmt: skip
_MOVE = {"bytes": (8, "q"), "start": (16, "q"), "end": (24, "q"), "device": (32, "w"), "stream": (36, "w"),
         "correlation": (40, "q"), "asynchronous": (48, "w")}  # fmt: skip
FIELDS: Mapping[Kind, Mapping[str, tuple[int, str]]] = {
    **dict.fromkeys(APIS, _API),
    Kind.MARKER: {
        "flag": (4, "w"), "side": (8, "w"), "time": (12, "q"), "id": (20, "q"), "-first": (28, "w"),
        "-second": (32, "w"), "name": (36, "t"), "domain": (44, "t"),
    },
    Kind.KERNEL: {
        "start": (4, "q"), "end": (12, "q"), "device": (20, "w"), "stream": (24, "w"), "correlation": (28, "q"),
        "type": (36, "t"), "name": (44, "t"),
    },
    Kind.HCCL: {
        "start": (4, "q"), "end": (12, "q"), "device": (20, "w"), "stream": (24, "w"), "bandwidth": (28, "q"),
        "name": (36, "t"), "comm": (44, "t"),
    },
    Kind.MEMORY: {
        "operation": (4, "w"), "memory": (8, "w"), "correlation": (12, "q"), "start": (20, "q"), "end": (28, "q"),
        "address": (36, "q"), "bytes": (44, "q"), "process": (52, "w"), "device": (56, "w"), "stream": (60, "w"),
    },
    Kind.MEMSET: {"value": (4, "w"), **_MOVE},
    Kind.MEMCPY: {"direction": (4, "w"), **_MOVE},
    Kind.COMMUNICATION: {
        "data_type": (4, "w"), "count": (8, "q"), "device": (16, "w"), "stream": (20, "w"), "start": (24, "q"),
        "end": (32, "q"), "algorithm": (40, "t"), "name": (48, "t"), "comm": (56, "t"), "correlation": (64, "q"),
    },
}  # fmt: skip
_WIDTH = {"w": 4, "q": 8, "t": 8}
_NEEDED = {kind: max(at + _WIDTH[form] for at, form in fields.values()) for kind, fields in FIELDS.items()}
"""Bytes of a record that are read."""

UNREADABLE = "bytes at the end of a damaged buffer"
SHORT = "records shorter than their kind is known to be"
NAMELESS = "names at addresses that cannot be read"

_LARGEST = 4096  # bytes in a record; more is a fault
_COMPARED = 32  # records of each buffer that the library walks too
_SMALLEST = 8  # a record is at least its kind, padded


class Library(Protocol):
    """What is needed of the activity library."""

    def walk(self, address: int, valid: int) -> Iterator[int]:
        """Addresses of the records in `valid` bytes."""

    def rewind(self, address: int) -> None:
        """Forget a walk that was not finished."""


class Decoder:
    """Buffers of at most `largest` bytes to batches; for one thread."""

    def __init__(self, library: Library, largest: int) -> None:
        """Raises Unavailable when machine code cannot be compiled here."""
        self._library = library
        self._code = Walk()
        self._sizes = np.zeros(KINDS, np.int64)
        self._rows = np.full(KINDS, -1, np.int64)
        self._rows[list(FIELDS)] = np.arange(len(FIELDS))
        self._width = largest // _SMALLEST + 1
        # Pages that are never touched cost nothing.
        self._starts = np.empty((len(FIELDS), self._width), np.int32)
        self.lost: Counter[str] = Counter()
        """What could not be read, by reason."""

    def decode(self, address: int, valid: int, strings: Strings) -> list[Batch]:
        """The records in `valid` bytes at an address, one batch a kind, in the order of the buffer."""
        counts, end = self._walk(address, valid)
        if end < valid or not self._agrees(address, valid):
            counts, end = self._library_walk(address, valid)
        if end < valid:
            self.lost[UNREADABLE] += valid - end
        with Memory() as memory:
            names = Names(memory, strings, self._code)
            batches = [self._batch(address, kind, int(counts[kind]), names) for kind in FIELDS if counts[kind]]
            if names.unreadable:
                self.lost[NAMELESS] += names.unreadable
        return [batch for batch in batches if batch]

    def _walk(self, address: int, valid: int) -> tuple[Column, int]:
        """How many records of each kind there are, and where reading ended."""
        counts = np.zeros(KINDS, np.int64)
        at = 0
        while True:
            at = self._code.walk(address, at, valid, self._sizes.ctypes.data, self._rows.ctypes.data,
                                 self._starts.ctypes.data, self._width, counts.ctypes.data)  # fmt: skip
            if valid - at < _SMALLEST or not self._learn(_word(address + at)):
                return counts, at

    def _learn(self, kind: int) -> bool:
        """Ask the library how long records of a kind are; False when that was known or cannot be learned."""
        if not 0 < kind < KINDS or self._sizes[kind]:
            return False
        # A block in which every word is the kind: wherever the library looks for the next record, it finds one.
        block = np.full(2 * _LARGEST // 4, kind, np.uint32)
        found = list(itertools.islice(self._from_start(block.ctypes.data, block.nbytes), 2))
        size = found[1] - found[0] if len(found) == 2 else 0
        if not _SMALLEST <= size <= _LARGEST or size % 4:
            return False
        self._sizes[kind] = size
        return True

    def _from_start(self, address: int, valid: int) -> Iterator[int]:
        """The library's walk, wound back before and after."""
        self._library.rewind(address)
        try:
            yield from self._library.walk(address, valid)
        finally:
            self._library.rewind(address)

    def _agrees(self, address: int, valid: int) -> bool:
        """Whether the library's first records are where they were found here."""
        theirs = list(itertools.islice(self._from_start(address, valid), _COMPARED))
        at = address
        for place in theirs:
            if place != at:
                return False
            at += int(self._sizes[_word(place)])
        return len(theirs) == _COMPARED or at == address + valid

    def _library_walk(self, address: int, valid: int) -> tuple[Column, int]:
        """As `_walk`, record by record as the library finds them: for buffers that are damaged, or whose records of
        one kind differ in length."""
        counts = np.zeros(KINDS, np.int64)
        places = np.fromiter(self._from_start(address, valid), np.int64) - address
        if not len(places):
            return counts, 0
        inside = (places >= 0) & (places + 4 <= valid) & (places % 4 == 0)
        places = places[: len(places) if inside.all() else int(inside.argmin())]
        kinds = np.array([_word(address + place) for place in places.tolist()], np.int64)
        ends = np.append(places[1:], valid)
        known = (kinds > 0) & (kinds < KINDS)
        sizes = np.where(known, self._sizes[np.where(known, kinds, 0)], 0)
        # Only the last record can reach beyond the bytes that are valid, and its end is known only by its kind.
        if len(places) and places[-1] + max(int(sizes[-1]), _SMALLEST) > valid:
            places, kinds, ends = places[:-1], kinds[:-1], ends[:-1]
        elif len(places):
            ends[-1] = min(valid, int(places[-1] + sizes[-1])) if sizes[-1] else valid
        for kind in FIELDS:
            mine = kinds == kind
            whole = mine & (ends - places >= _NEEDED[kind])
            if missing := int(mine.sum() - whole.sum()):
                self.lost[SHORT] += missing
            counts[kind] = whole.sum()
            self._starts[self._rows[kind], : counts[kind]] = places[whole] // 4
        return counts, int(ends[-1]) if len(ends) else 0

    def _batch(self, address: int, kind: Kind, count: int, names: Names) -> Batch | None:
        if self._sizes[kind] and self._sizes[kind] < _NEEDED[kind]:
            self.lost[SHORT] += count
            return None
        starts = self._starts[self._rows[kind]].ctypes.data
        read = {name: self._field(address + at, form, starts, count) for name, (at, form) in FIELDS[kind].items()}
        texts = {name: names.numbers(read[name]) for name, (_, form) in FIELDS[kind].items() if form == "t"}
        if kind is Kind.MARKER:
            read |= _objects(read)
        elif kind is Kind.HCCL:
            read["bandwidth"] = read["bandwidth"].view(np.float64)
        columns = read | texts
        return Batch(kind, {name: columns[name].astype(dtype, copy=False) for name, dtype in COLUMNS[kind].items()})

    def _field(self, base: int, form: str, starts: int, count: int) -> Column:
        """int64, as the wire has it."""
        out = np.empty(count, np.int64)
        read = self._code.field32 if form == "w" else self._code.field64
        read(base, starts, count, out.ctypes.data)
        return out


def _objects(read: Mapping[str, Column]) -> dict[str, Column]:
    """A marker's two numbers are a process and thread on the host's side, a device and stream on the device's."""
    host = read["side"] == Side.HOST
    first, second = read["-first"], read["-second"]
    return {
        "process": np.where(host, first, -1), "thread": np.where(host, second, -1),
        "device": np.where(host, -1, first), "stream": np.where(host, -1, second),
    }  # fmt: skip


def _word(address: int) -> int:
    return ctypes.c_uint32.from_address(address).value
