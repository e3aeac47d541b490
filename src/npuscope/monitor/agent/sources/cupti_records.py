"""Records of the GPU's activity library as columns of our kinds.

The library's package gives an object for each record, whose attributes are slow to ask. But an object says where its
bytes are (`ptr`), and the package has a numpy type for them; so the bytes of a buffer's records are gathered and read
as columns.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.batch import batch
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver

KERNEL_TYPE = "KERNEL_GPU"
"""Stands where the vendor's records say on which cores a kernel runs."""
DEFAULT_DOMAIN = "default"
VERSION = re.compile(r"_v\d+$")
"""At the end of the name of a call: the version of the interface that brought it."""
FLAGS = int(Flag.INSTANT | Flag.START | Flag.END)
"""The library's flags of markers have the same numbers; further ones tell of locks."""
ASYNCHRONOUS = 1
DIRECTIONS = np.array([0, 2, 3, 2, 3, 4, 4, 4, 4, 1, 4], np.uint32)
"""By the library's kind of copy (unknown, HtoD, DtoH, HtoA, AtoH, AtoA, AtoD, DtoA, DtoD, HtoH, PtoP) ours: an array
lies on the device, and so does a peer's memory."""
RELEASE, DEVICE_MEMORY = 2, 3
UNKNOWN_CONTEXT = 0xFFFFFFFF
Columns = dict[str, Any]
Rows = NDArray[np.void]
"""Records of one kind, with the package's names of the fields."""
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Decoder:
    """Turns buffers of one collection into batches. `offset` brings the library's times to the wall clock."""

    def __init__(self, library: Any, strings: Strings, deliver: Deliver, offset: int) -> None:
        self._library = library
        self._strings = strings
        self._deliver = deliver
        self._offset = offset
        self._kernels = Named(strings, demangled)
        domains = library.CallbackDomain
        self._calls = {
            Kind.API: Named(strings, lambda cbid: self._call(domains.DRIVER_API, cbid)),
            Kind.RUNTIME_API: Named(strings, lambda cbid: self._call(domains.RUNTIME_API, cbid)),
        }
        kinds = library.ActivityKind
        self._makers: Mapping[int, tuple[Kind, Callable[[Rows], Columns]]] = {
            int(kinds.MARKER): (Kind.MARKER, self._marker),
            int(kinds.KERNEL): (Kind.KERNEL, self._kernel),
            int(kinds.CONCURRENT_KERNEL): (Kind.KERNEL, self._kernel),
            int(kinds.DRIVER): (Kind.API, lambda records: self._api(Kind.API, records)),
            int(kinds.RUNTIME): (Kind.RUNTIME_API, lambda records: self._api(Kind.RUNTIME_API, records)),
            int(kinds.MEMORY2): (Kind.MEMORY, self._memory),
            int(kinds.MEMSET): (Kind.MEMSET, self._memset),
            int(kinds.MEMCPY): (Kind.MEMCPY, self._memcpy),
            int(kinds.MEMCPY2): (Kind.MEMCPY, self._memcpy),
        }

    def decode(self, records: Sequence[Any]) -> None:
        """Deliver the records of a buffer, a batch for each kind of theirs; kinds that nobody asked for are left."""
        places = np.fromiter(map(attrgetter("ptr"), records), np.int64, len(records))
        kinds = gathered(places, np.dtype(np.int32))  # all records begin with it
        for number in np.unique(kinds).tolist():
            if number in self._makers:
                kind, make = self._makers[number]
                chosen = np.flatnonzero(kinds == number)
                rows = gathered(places[chosen], self._layout(type(records[chosen[0]]).__name__))
                self._deliver(batch(kind, make(rows)))

    def _layout(self, record: str) -> np.dtype[Any]:
        """The bytes of a record: `activity_kernel12_dtype` for the class ActivityKernel12."""
        return np.dtype(getattr(self._library, f"{WORDS.sub('_', record).lower()}_dtype"))

    def _times(self, rows: Rows, name: str) -> NDArray[np.int64]:
        return rows[name].astype(np.int64) + self._offset

    def _names(self, pointers: NDArray[np.int64], number: Callable[[str], int]) -> NDArray[np.int32]:
        """Numbers for texts of C; each is read once."""
        known, place = np.unique(pointers, return_inverse=True)
        return np.array([number(text_at(pointer)) for pointer in known.tolist()], np.int32)[place]

    def _kernel(self, rows: Rows) -> Columns:
        return {
            "start": self._times(rows, "start"), "end": self._times(rows, "end"), "device": rows["device_id"],
            "stream": rows["stream_id"], "correlation": rows["correlation_id"],
            "type": np.full(len(rows), self._strings.number(KERNEL_TYPE)),
            "name": self._names(rows["name"], self._kernels.__getitem__),
        }  # fmt: skip

    def _api(self, kind: Kind, rows: Rows) -> Columns:
        return {
            "start": self._times(rows, "start"), "end": self._times(rows, "end"), "process": rows["process_id"],
            "thread": rows["thread_id"], "correlation": rows["correlation_id"],
            "name": self._calls[kind].of(rows["cbid"].tolist()),
        }  # fmt: skip

    def _marker(self, rows: Rows) -> Columns:
        thread, nothing = rows["object_id"]["pt"], np.full(len(rows), -1)
        return {
            "flag": rows["flags_"].astype(np.uint32) & FLAGS, "side": np.full(len(rows), Side.HOST),
            "time": self._times(rows, "timestamp"), "id": rows["id"], "process": thread["process_id"],
            "thread": thread["thread_id"], "device": nothing, "stream": nothing,
            "name": self._names(rows["name"], self._strings.number),
            "domain": self._names(rows["domain"], lambda text: self._strings.number(text or DEFAULT_DOMAIN)),
        }  # fmt: skip

    def _memory(self, rows: Rows) -> Columns:
        times = self._times(rows, "timestamp")
        return {
            "operation": rows["memory_operation_type"] == RELEASE, "memory": rows["memory_kind"] == DEVICE_MEMORY,
            "correlation": rows["correlation_id"], "start": times, "end": times, "address": rows["address"],
            "bytes": rows["bytes"], "process": rows["process_id"], "device": _there(rows["device_id"]),
            "stream": _there(rows["stream_id"]),
        }  # fmt: skip

    def _memset(self, rows: Rows) -> Columns:
        return {"value": rows["value"], **self._moved(rows)}

    def _memcpy(self, rows: Rows) -> Columns:
        known = np.minimum(rows["copy_kind"], len(DIRECTIONS))
        return {"direction": np.append(DIRECTIONS, 0)[known], **self._moved(rows)}

    def _moved(self, rows: Rows) -> Columns:
        return {
            "bytes": rows["bytes"], "start": self._times(rows, "start"), "end": self._times(rows, "end"),
            "device": rows["device_id"], "stream": rows["stream_id"], "correlation": rows["correlation_id"],
            "asynchronous": rows["flags_"] & ASYNCHRONOUS,
        }  # fmt: skip

    def _call(self, domain: int, cbid: int) -> str:
        """The name of a call of driver or runtime."""
        try:
            return VERSION.sub("", self._library.get_callback_name(domain, cbid))
        except Exception:  # newer than the library
            return f"call {cbid}"


class Named(dict[Any, int]):
    """Numbers of texts that are worked out once each."""

    def __init__(self, strings: Strings, text: Callable[[Any], str]) -> None:
        self.strings = strings
        self.text = text

    def __missing__(self, key: Any) -> int:
        number = self[key] = self.strings.number(self.text(key))
        return number

    def of(self, keys: Iterable[Any]) -> NDArray[np.int32]:
        """The numbers for `keys`."""
        return np.fromiter(map(self.__getitem__, keys), np.int32)


def gathered(places: NDArray[np.int64], layout: np.dtype[Any]) -> NDArray[Any]:
    """What lies at these addresses, (len(places),) of `layout`, copied."""
    low = int(places.min())
    # A view of all that lies between; only what is asked for is touched.
    span = int(places.max()) - low + layout.itemsize
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * span).from_address(low))
    return memory[(places - low)[:, None] + np.arange(layout.itemsize)].reshape(-1).view(layout)


def text_at(pointer: int) -> str:
    """A text of C; "" where there is none."""
    return ctypes.string_at(pointer).decode(errors="replace") if pointer else ""


def _there(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Device or stream, -1 where the library says that none is meant."""
    found = numbers.astype(np.int64)
    return np.where(found == UNKNOWN_CONTEXT, -1, found)


def demangled(name: str) -> str:
    """The name of a C++ function as its source has it; any other as it is."""
    if not name.startswith("_Z"):
        return name
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        demangle = library.__cxa_demangle
        demangle.restype, demangle.argtypes = ctypes.c_void_p, [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
        status = ctypes.c_int(0)
        found = demangle(name.encode(), None, None, ctypes.addressof(status))
        if not found:
            return name
        text = ctypes.string_at(found).decode(errors="replace")
        free = ctypes.CDLL(None).free
        free.restype, free.argtypes = None, [ctypes.c_void_p]
        free(found)
        return text
    except (OSError, AttributeError):
        return name
