"""Records of the GPU's activity library. No GPU is needed: the library's package is real where it is installed (its
record classes are made from bytes), a stand-in with the same names elsewhere."""

from __future__ import annotations

import ctypes
import enum
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import time_ns
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Flag, Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import cupti as module
from npuscope.monitor.agent.sources.cupti import ACTIVITIES, CuptiSource
from npuscope.monitor.agent.sources.cupti_records import demangled
from npuscope.monitor.agent.sources.source import Unavailable

BEHIND = 5_000_000_000
"""Nanoseconds by which the stand-in's clock is behind the wall clock."""


class ActivityKind(enum.IntEnum):
    """Numbers of the public header."""

    MEMCPY, MEMSET, KERNEL, DRIVER, RUNTIME = 1, 2, 3, 4, 5
    CONCURRENT_KERNEL, MARKER, MEMCPY2, MEMORY2 = 10, 12, 22, 49
    OVERHEAD = 17


TIMED = [("start", "<u8"), ("end", "<u8")]
PLACE = [("device_id", "<u4"), ("context_id", "<u4"), ("stream_id", "<u4"), ("correlation_id", "<u4")]
LAYOUTS: dict[str, Any] = {
    "activity_kernel9_dtype": [("kind", "<i4"), ("name", "<i8"), *TIMED, *PLACE],
    "activity_api_dtype": [("kind", "<i4"), ("cbid", "<u4"), *TIMED, ("process_id", "<u4"), ("thread_id", "<u4"),
                           ("correlation_id", "<u4"), ("return_value", "<u4")],
    "activity_marker2_dtype": [
        ("kind", "<i4"), ("flags_", "<i4"), ("timestamp", "<u8"), ("id", "<u4"), ("object_kind", "<i4"),
        ("object_id", [("pt", [("process_id", "<u4"), ("thread_id", "<u4")])]), ("name", "<i8"), ("domain", "<i8"),
    ],
    "activity_memcpy6_dtype": [("kind", "<i4"), ("copy_kind", "u1"), ("flags_", "u1"), ("bytes", "<u8"), *TIMED,
                               *PLACE],
    "activity_memcpy_pto_p4_dtype": [("kind", "<i4"), ("copy_kind", "u1"), ("flags_", "u1"), ("bytes", "<u8"), *TIMED,
                                     *PLACE],
    "activity_memset4_dtype": [("kind", "<i4"), ("value", "<u4"), ("bytes", "<u8"), *TIMED, *PLACE, ("flags_", "<u2")],
    "activity_memory4_dtype": [
        ("kind", "<i4"), ("memory_operation_type", "<i4"), ("memory_kind", "<i4"), ("correlation_id", "<u4"),
        ("timestamp", "<u8"), ("address", "<u8"), ("bytes", "<u8"), ("process_id", "<u4"), ("device_id", "<u4"),
        ("stream_id", "<u4"),
    ],
    "activity_overhead3_dtype": [("kind", "<i4")],
}  # fmt: skip
"""Fields that are read, and some between them; the real package's layouts have more."""


class Library:
    """The calls of the package that the source makes, and what a GPU does meanwhile."""

    ActivityKind = ActivityKind
    CallbackDomain = enum.IntEnum("CallbackDomain", {"DRIVER_API": 1, "RUNTIME_API": 2})
    ActivityThreadIdType = enum.IntEnum("ActivityThreadIdType", {"DEFAULT": 0, "SYSTEM": 1})

    def __init__(self) -> None:
        self.__dict__.update(LAYOUTS)
        self.enabled: set[int] = set()
        self.waiting: list[Any] = []
        self.dropped = 0
        self.refused: Exception | None = None

    def activity_register_callbacks(
        self, requested: Callable[[], tuple[int, int]], completed: Callable[[list[Any]], None]
    ) -> None:
        assert requested() == (8 * 1024 * 1024, 0)
        self.completed = completed

    def set_thread_id_type(self, kind: int) -> None:
        assert kind == 1

    def activity_enable(self, kind: int) -> None:
        if self.refused:
            raise self.refused
        self.enabled.add(kind)

    def activity_disable(self, kind: int) -> None:
        self.enabled.discard(kind)

    def activity_flush_all(self, flag: int) -> None:
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.completed(waiting)

    def activity_get_num_dropped_records(self, context: int, stream: int, pointer: int) -> None:
        ctypes.c_size_t.from_address(pointer).value, self.dropped = self.dropped, 0

    def get_timestamp(self) -> int:
        return time_ns() - BEHIND

    def get_callback_name(self, domain: int, cbid: int) -> str:
        return {(2, 211): "cudaLaunchKernel_v7000", (1, 307): "cuLaunchKernel"}[domain, cbid]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr(module, "_load", lambda: found)
    return found


class Found:
    """A source that runs, and what it delivers."""

    def __init__(self, kinds: frozenset[Kind] = frozenset(Kind)) -> None:
        self.source, self.strings = CuptiSource(), Strings()
        self.batches: list[Batch] = []
        self.source.start(kinds, self.strings, self.batches.append)

    def stop(self) -> dict[Kind, Batch]:
        self.source.stop()
        return {batch.kind: batch for batch in self.batches}

    def text(self, number: int) -> str:
        return self.strings.texts[number]


def made(library: Any, record: str, /, **fields: Any) -> Any:
    """A record of a class of that name, out of bytes; texts are pointers."""
    dtype = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", record).lower() + "_dtype"
    data = np.zeros(1, LAYOUTS[dtype] if isinstance(library, Library) else getattr(library, dtype))
    texts = []
    for field, value in fields.items():
        if isinstance(value, bytes):
            texts.append(ctypes.create_string_buffer(value))
            value = ctypes.addressof(texts[-1])
        if field == "thread":
            data["object_id"]["pt"]["process_id"], data["object_id"]["pt"]["thread_id"] = value
        else:
            data[field] = value
    KEPT.append((data, texts))
    if isinstance(library, Library):
        return type(record, (), {"ptr": data.ctypes.data})()
    return getattr(library, record).from_data(data)


KEPT: list[Any] = []
"""Memory that belongs to records."""
MOVED = {"bytes": 64, "start": 10, "end": 30, "device_id": 1, "stream_id": 7, "correlation_id": 5}
CALL = {"start": 1, "end": 2, "process_id": 3, "thread_id": 4}
RUN = {"kind": 10, "start": 1000, "end": 3500, "device_id": 1, "stream_id": 7, "correlation_id": 42}
MEMORY = {"kind": 49, "correlation_id": 5, "timestamp": 11, "address": 2**40, "bytes": 99, "process_id": 3}


def everything(library: Any, kernels: Sequence[int], copies: Sequence[int], sets: Sequence[int]) -> list[Any]:
    """Records of all kinds; the numbers are those in the names of classes."""
    record = partial(made, library)
    return [
        *(record(f"ActivityKernel{number}", name=b"_Z3addPfi", **RUN) for number in kernels),
        record(f"ActivityKernel{kernels[0]}", name=b"plain", **RUN),
        record("ActivityOverhead3", kind=17),
        record("ActivityAPI", kind=5, cbid=211, correlation_id=42, **CALL),
        record("ActivityAPI", kind=4, cbid=307, correlation_id=42, **CALL),
        record("ActivityAPI", kind=4, cbid=9999, correlation_id=43, **CALL),
        record("ActivityMarker2", kind=12, flags_=2, timestamp=5, id=8, thread=(3, 4), name=b"step"),
        record("ActivityMarker2", kind=12, flags_=4, timestamp=9, id=8, thread=(3, 4), domain=b"mine"),
        *(record(f"ActivityMemcpy{copies[0]}", kind=1, copy_kind=way, flags_=way == 1, **MOVED)
          for way in (1, 2, 8, 9, 77)),
        *(record(f"ActivityMemcpy{number}", kind=1, copy_kind=1, **MOVED) for number in copies[1:]),
        record("ActivityMemcpyPtoP4", kind=22, copy_kind=10, flags_=1, **MOVED),
        *(record(f"ActivityMemset{number}", kind=2, value=255, **MOVED) for number in sets),
        record("ActivityMemory4", memory_operation_type=1, memory_kind=3, device_id=0, stream_id=0xFFFFFFFF, **MEMORY),
        record("ActivityMemory4", memory_operation_type=2, memory_kind=2, device_id=0, stream_id=7, **MEMORY),
    ]  # fmt: skip


def judge(found: Found, kernels: int) -> None:
    """Fields by hand, times on the wall clock, names as people write them."""
    assert found.source.losses == {}
    batches = {batch.kind: batch for batch in found.batches}
    assert batches.keys() == ACTIVITIES.keys()
    run = batches[Kind.KERNEL]
    assert abs(run["start"][0] - (1000 + BEHIND)) < 1e9
    assert (run["end"] - run["start"]).tolist() == [2500] * (kernels + 1)
    assert [found.text(number) for number in run["name"]] == ["add(float*, int)"] * kernels + ["plain"]
    assert found.text(run["type"][0]) == "KERNEL_GPU"
    assert (run["device"][0], run["stream"][0], run["correlation"][0]) == (1, 7, 42)
    assert found.text(batches[Kind.RUNTIME_API]["name"][0]) == "cudaLaunchKernel"
    assert [found.text(number) for number in batches[Kind.API]["name"]] == ["cuLaunchKernel", "call 9999"]
    marker = batches[Kind.MARKER]
    assert marker["flag"].tolist() == [Flag.START, Flag.END]
    assert (marker["process"].tolist(), marker["thread"].tolist()) == ([3, 3], [4, 4])
    assert [found.text(number) for number in marker["name"]] == ["step", ""]
    assert [found.text(number) for number in marker["domain"]] == ["default", "mine"]
    copies = [batch for batch in found.batches if batch.kind is Kind.MEMCPY]
    # Host to device, back, on the device, on the host, unknown; and to a peer.
    assert copies[0]["direction"].tolist()[:5] == [2, 3, 4, 1, 0] and copies[-1]["direction"].tolist()[-1] == 4
    assert copies[0]["asynchronous"].tolist()[:5] == [1, 0, 0, 0, 0] and copies[0]["bytes"][0] == 64
    assert set(batches[Kind.MEMSET]["value"].tolist()) == {255}
    memory = batches[Kind.MEMORY]
    assert memory["operation"].tolist() == [0, 1] and memory["memory"].tolist() == [1, 0]
    assert memory["stream"].tolist() == [-1, 7] and memory["address"].tolist() == [2**40] * 2


def test_each_kind(library: Library) -> None:
    found = Found()
    assert library.enabled == {ActivityKind[name] for names in ACTIVITIES.values() for name in names}
    library.waiting = everything(library, [9], [6], [4])
    found.stop()
    assert library.enabled == set()
    judge(found, 1)


def test_kinds_change_while_it_runs(library: Library) -> None:
    found = Found(frozenset({Kind.KERNEL, Kind.HCCL}))
    assert library.enabled == {ActivityKind.CONCURRENT_KERNEL}
    found.source.change(frozenset({Kind.MEMCPY}))
    assert library.enabled == {ActivityKind.MEMCPY, ActivityKind.MEMCPY2}
    found.stop()
    found.source.stop()
    assert library.enabled == set()


def test_losses(library: Library) -> None:
    """What the library dropped, and a buffer with something unheard-of: said, and nothing reaches the library."""
    found = Found()
    library.waiting, library.dropped = [SimpleNamespace()], 12
    found.source.flush()
    assert found.source.losses == {"records that could not be read": 1, "records dropped by the library": 12}
    library.waiting = [made(library, "ActivityKernel9", name=b"x", **RUN)]
    assert len(found.stop()[Kind.KERNEL]) == 1


def test_a_library_that_refuses(library: Library) -> None:
    """One line, and nothing runs; later it may go well."""
    library.refused = RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")
    source = CuptiSource()
    with pytest.raises(Unavailable, match="does not start: CUPTI_ERROR_MULTIPLE"):
        source.start(frozenset(Kind), Strings(), lambda batch: None)
    assert library.enabled == set()
    library.refused = None
    source.start(frozenset({Kind.KERNEL}), Strings(), lambda batch: None)
    assert library.enabled == {ActivityKind.CONCURRENT_KERNEL}


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRIVER", "libno-such-driver.so.1")
    with pytest.raises(Unavailable, match="no NVIDIA driver here"):
        CuptiSource().start(frozenset(Kind), Strings(), lambda batch: None)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRIVER", "libc.so.6")
    monkeypatch.setitem(__import__("sys").modules, "cupti", None)
    with pytest.raises(Unavailable, match="cupti-python is not installed"):
        CuptiSource().start(frozenset(Kind), Strings(), lambda batch: None)


def test_names_of_functions() -> None:
    assert demangled("_Z3addPfi") == "add(float*, int)"
    assert demangled("_Znonsense") == "_Znonsense"
    assert demangled("triton_poi_fused_0") == "triton_poi_fused_0" and demangled("") == ""


@pytest.fixture
def real() -> Iterator[Any]:
    """The package itself."""
    yield pytest.importorskip("cupti.cupti")


def test_the_packages_own_names(real: Any) -> None:
    """Everything that the source calls is there, under the numbers of the public header."""
    for name in dir(Library):
        if not name.startswith("_"):
            assert hasattr(real, name), name
    assert {kind.name: kind.value for kind in ActivityKind}.items() <= {
        kind.name: kind.value for kind in real.ActivityKind
    }.items()
    assert (real.CallbackDomain.DRIVER_API, real.CallbackDomain.RUNTIME_API) == (1, 2)
    assert real.ActivityThreadIdType.SYSTEM is not None
    with pytest.raises(Exception, match="CUDA driver"):
        real.get_timestamp()


@pytest.mark.parametrize("version", [9, 10, 11, 12, 13])
def test_the_packages_own_records(real: Any, library: Library, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record classes that the package gives, in their own layouts, whichever version of them it is."""
    for name in dir(real):
        if name.startswith("activity_") and name.endswith("_dtype"):
            monkeypatch.setattr(library, name, getattr(real, name), raising=False)
    found = Found()
    copies, sets = {9: (5, 4), 13: (7, 5)}.get(version, (6, 4))
    library.waiting = everything(real, [version] * 3, [copies], [sets])
    found.stop()
    judge(found, 3)
