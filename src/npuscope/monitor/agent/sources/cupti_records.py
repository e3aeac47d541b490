"""Records of the GPU's activity library as columns of our kinds."""

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
from npuscope.monitor.agent.sources.numbered import Numbered
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


class Decoder:
    """Turns buffers of one collection into batches. `offset` brings the library's times to the wall clock."""

    def __init__(self, library: Any, strings: Strings, deliver: Deliver, offset: int) -> None:
        self._library = library
        self._strings = strings
        self._deliver = deliver
        self._offset = offset
        self._texts = Numbered(strings)
        self._kernels = Named(strings, demangled)
        domains = library.CallbackDomain
        self._calls = {
            Kind.API: Named(strings, lambda cbid: self._call(domains.DRIVER_API, cbid)),
            Kind.RUNTIME_API: Named(strings, lambda cbid: self._call(domains.RUNTIME_API, cbid)),
        }
        kinds = library.ActivityKind
        self._makers: Mapping[int, tuple[Kind, Callable[[Sequence[Any]], Columns]]] = {
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
        kinds = np.fromiter(map(attrgetter("kind"), records), np.int64, len(records))
        for number in np.unique(kinds).tolist():
            if number in self._makers:
                kind, make = self._makers[number]
                chosen = [records[place] for place in np.flatnonzero(kinds == number).tolist()]
                self._deliver(batch(kind, make(chosen)))

    def _times(self, times: Sequence[int]) -> NDArray[np.int64]:
        return np.array(times, np.int64) + self._offset

    def _kernel(self, records: Sequence[Any]) -> Columns:
        start, end, device, stream, correlation, name = _fields(
            records, "start", "end", "device_id", "stream_id", "correlation_id", "name"
        )
        return {
            "start": self._times(start), "end": self._times(end), "device": device, "stream": stream,
            "correlation": correlation, "type": self._texts.of([KERNEL_TYPE] * len(records)),
            "name": self._kernels.of(name),
        }  # fmt: skip

    def _api(self, kind: Kind, records: Sequence[Any]) -> Columns:
        start, end, process, thread, correlation, call = _fields(
            records, "start", "end", "process_id", "thread_id", "correlation_id", "cbid"
        )
        return {
            "start": self._times(start), "end": self._times(end), "process": process, "thread": thread,
            "correlation": correlation, "name": self._calls[kind].of(call),
        }  # fmt: skip

    def _marker(self, records: Sequence[Any]) -> Columns:
        flag, time, number, process, thread, name, domain = _fields(
            records, "flags_", "timestamp", "id", "object_id.pt.process_id", "object_id.pt.thread_id", "name", "domain"
        )
        nothing = np.full(len(records), -1)
        return {
            "flag": np.array(flag, np.uint32) & FLAGS, "side": np.full(len(records), Side.HOST),
            "time": self._times(time), "id": number, "process": process, "thread": thread, "device": nothing,
            "stream": nothing, "name": self._texts.of([text or "" for text in name]),
            "domain": self._texts.of([text or DEFAULT_DOMAIN for text in domain]),
        }  # fmt: skip

    def _memory(self, records: Sequence[Any]) -> Columns:
        operation, memory, correlation, time, address, size, process, device, stream = _fields(
            records, "memory_operation_type", "memory_kind", "correlation_id", "timestamp", "address", "bytes",
            "process_id", "device_id", "stream_id",
        )  # fmt: skip
        times = self._times(time)
        return {
            "operation": np.array(operation) == RELEASE, "memory": np.array(memory) == DEVICE_MEMORY,
            "correlation": correlation, "start": times, "end": times, "address": address, "bytes": size,
            "process": process, "device": _there(device), "stream": _there(stream),
        }  # fmt: skip

    def _memset(self, records: Sequence[Any]) -> Columns:
        (value,) = _fields(records, "value")
        return {"value": value, **self._moved(records)}

    def _memcpy(self, records: Sequence[Any]) -> Columns:
        (kind,) = _fields(records, "copy_kind")
        known = np.minimum(np.array(kind, np.int64), len(DIRECTIONS))
        return {"direction": np.append(DIRECTIONS, 0)[known], **self._moved(records)}

    def _moved(self, records: Sequence[Any]) -> Columns:
        size, start, end, device, stream, correlation, flags = _fields(
            records, "bytes", "start", "end", "device_id", "stream_id", "correlation_id", "flags_"
        )
        return {
            "bytes": size, "start": self._times(start), "end": self._times(end), "device": device, "stream": stream,
            "correlation": correlation, "asynchronous": np.array(flags, np.int64) & ASYNCHRONOUS,
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


def _fields(records: Sequence[Any], *names: str) -> list[Sequence[Any]]:
    """A tuple for each attribute."""
    if len(names) == 1:
        return [list(map(attrgetter(names[0]), records))]
    return list(zip(*map(attrgetter(*names), records), strict=True))


def _there(numbers: Sequence[int]) -> NDArray[np.int64]:
    """Device or stream, -1 where the library says that none is meant."""
    found = np.array(numbers, np.int64)
    return np.where(found == UNKNOWN_CONTEXT, -1, found)


def demangled(name: str | None) -> str:
    """The name of a C++ function as its source has it; any other as it is."""
    if not name or not name.startswith("_Z"):
        return name or ""
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
