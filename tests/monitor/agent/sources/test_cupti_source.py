"""Records of the GPU's activity library. No GPU is needed: the library's package is real where it is installed (its
record classes are made from bytes), a stand-in with the same names elsewhere."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable, Iterator
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


class Library:
    """The calls of the package that the source makes, and what a GPU does meanwhile."""

    ActivityKind = ActivityKind
    CallbackDomain = enum.IntEnum("CallbackDomain", {"DRIVER_API": 1, "RUNTIME_API": 2})
    ActivityThreadIdType = enum.IntEnum("ActivityThreadIdType", {"DEFAULT": 0, "SYSTEM": 1})

    def __init__(self) -> None:
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


MOVED = {"bytes": 64, "start": 10, "end": 30, "device_id": 1, "stream_id": 7, "correlation_id": 5, "flags_": 1}


def kernel(**more: Any) -> SimpleNamespace:
    fields = {"kind": 10, "start": 1000, "end": 3500, "device_id": 1, "stream_id": 7, "correlation_id": 42,
              "name": "_Z3addPfi"}  # fmt: skip
    return SimpleNamespace(**fields | more)


def test_each_kind(library: Library) -> None:
    """Fields by hand, times on the wall clock, names as people write them."""
    found = Found()
    assert library.enabled == {ActivityKind[name] for names in ACTIVITIES.values() for name in names}
    place = SimpleNamespace(pt=SimpleNamespace(process_id=3, thread_id=4))
    library.waiting = [
        kernel(), kernel(name="plain"), SimpleNamespace(kind=17),
        SimpleNamespace(kind=5, cbid=211, start=1, end=2, process_id=3, thread_id=4, correlation_id=42),
        SimpleNamespace(kind=4, cbid=307, start=1, end=2, process_id=3, thread_id=4, correlation_id=42),
        SimpleNamespace(kind=4, cbid=9999, start=1, end=2, process_id=3, thread_id=4, correlation_id=43),
        SimpleNamespace(kind=12, flags_=2, timestamp=5, id=8, object_id=place, name="step", domain=None),
        SimpleNamespace(kind=12, flags_=4, timestamp=9, id=8, object_id=place, name=None, domain=None),
        SimpleNamespace(kind=1, copy_kind=1, **MOVED), SimpleNamespace(kind=1, copy_kind=2, **MOVED | {"flags_": 0}),
        SimpleNamespace(kind=1, copy_kind=8, **MOVED), SimpleNamespace(kind=1, copy_kind=9, **MOVED),
        SimpleNamespace(kind=1, copy_kind=77, **MOVED), SimpleNamespace(kind=22, copy_kind=10, **MOVED),
        SimpleNamespace(kind=2, value=255, **MOVED),
        SimpleNamespace(kind=49, memory_operation_type=1, memory_kind=3, correlation_id=5, timestamp=11, address=2**40,
                        bytes=99, process_id=3, device_id=0, stream_id=0xFFFFFFFF),
        SimpleNamespace(kind=49, memory_operation_type=2, memory_kind=2, correlation_id=6, timestamp=12, address=2**40,
                        bytes=99, process_id=3, device_id=0, stream_id=7),
    ]  # fmt: skip
    batches = found.stop()
    assert batches.keys() == ACTIVITIES.keys() and library.enabled == set() and found.source.losses == {}
    run = batches[Kind.KERNEL]
    assert abs(run["start"][0] - (1000 + BEHIND)) < 1e9 and (run["end"] - run["start"]).tolist() == [2500, 2500]
    assert [found.text(number) for number in run["name"]] == ["add(float*, int)", "plain"]
    assert found.text(run["type"][0]) == "KERNEL_GPU"
    assert (run["device"][0], run["stream"][0], run["correlation"][0]) == (1, 7, 42)
    assert found.text(batches[Kind.RUNTIME_API]["name"][0]) == "cudaLaunchKernel"
    assert [found.text(number) for number in batches[Kind.API]["name"]] == ["cuLaunchKernel", "call 9999"]
    marker = batches[Kind.MARKER]
    assert marker["flag"].tolist() == [Flag.START, Flag.END] and marker["thread"].tolist() == [4, 4]
    assert [found.text(number) for number in marker["name"]] == ["step", ""]
    assert {found.text(number) for number in marker["domain"]} == {"default"}
    directions = [
        number for batch in found.batches if batch.kind is Kind.MEMCPY for number in batch["direction"].tolist()
    ]
    assert directions == [2, 3, 4, 1, 0, 4]  # host to device, back, on the device, on the host, unknown, to a peer
    assert next(b for b in found.batches if b.kind is Kind.MEMCPY)["asynchronous"].tolist() == [1, 0, 1, 1, 1]
    assert batches[Kind.MEMSET]["value"].tolist() == [255] and batches[Kind.MEMSET]["bytes"].tolist() == [64]
    memory = batches[Kind.MEMORY]
    assert memory["operation"].tolist() == [0, 1] and memory["memory"].tolist() == [1, 0]
    assert memory["stream"].tolist() == [-1, 7] and memory["address"].tolist() == [2**40] * 2


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
    library.waiting, library.dropped = [SimpleNamespace(kind=10)], 12
    found.source.flush()
    assert found.source.losses == {"records that could not be read": 1, "records dropped by the library": 12}
    library.waiting = [kernel()]
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
    assert demangled("triton_poi_fused_0") == "triton_poi_fused_0" and demangled(None) == ""


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


def made(real: Any, record: str, dtype: str, /, **fields: Any) -> Any:
    """A record of the package's own class, out of bytes."""
    data = np.zeros(1, getattr(real, dtype))
    for field, value in fields.items():
        data[field] = value
    return getattr(real, record).from_data(data)


def test_the_packages_own_records(real: Any, library: Library) -> None:
    """The record classes that the package gives for each kind have the attributes that are read."""
    text = ctypes.create_string_buffer(b"_Z3addPfi")
    point = ctypes.addressof(text)
    moved = {"bytes": 64, "start": 10, "end": 30, "device_id": 1, "stream_id": 7, "correlation_id": 5}
    call = {"start": 1, "end": 2, "process_id": 3, "thread_id": 4, "correlation_id": 42}
    marker = {"flags_": 2, "timestamp": 5, "id": 8, "name": point, "domain": 0}
    found = Found()
    library.waiting = [
        made(real, f"ActivityKernel{version}", f"activity_kernel{version}_dtype", kind=10, start=1000, end=3500,
             device_id=1, stream_id=7, correlation_id=42, name=point)
        for version in (9, 10, 11, 12, 13)
    ] + [
        made(real, "ActivityAPI", "activity_api_dtype", kind=5, cbid=211, **call),
        made(real, "ActivityAPI", "activity_api_dtype", kind=4, cbid=307, **call),
        made(real, "ActivityMarker2", "activity_marker2_dtype", kind=12, **marker),
        *(made(real, f"ActivityMemcpy{version}", f"activity_memcpy{version}_dtype", kind=1, copy_kind=1, flags_=1,
               **moved) for version in (5, 6, 7)),
        made(real, "ActivityMemcpyPtoP4", "activity_memcpy_pto_p4_dtype", kind=22, copy_kind=10, flags_=1, **moved),
        *(made(real, f"ActivityMemset{version}", f"activity_memset{version}_dtype", kind=2, value=9, flags_=0, **moved)
          for version in (4, 5)),
        made(real, "ActivityMemory4", "activity_memory4_dtype", kind=49, memory_operation_type=1, memory_kind=3,
             timestamp=11, address=2**40, bytes=99, process_id=3, device_id=0, stream_id=7, correlation_id=6),
    ]  # fmt: skip
    batches = found.stop()
    assert found.source.losses == {} and batches.keys() == ACTIVITIES.keys()
    run = batches[Kind.KERNEL]
    assert len(run) == 5 and {found.text(number) for number in run["name"]} == {"add(float*, int)"}
    assert set((run["end"] - run["start"]).tolist()) == {2500} and set(run["stream"].tolist()) == {7}
    assert found.text(batches[Kind.MARKER]["name"][0]) == "_Z3addPfi"
    assert found.text(batches[Kind.MARKER]["domain"][0]) == "default"
    assert batches[Kind.MEMSET]["value"].tolist() == [9, 9] and batches[Kind.MEMORY]["bytes"].tolist() == [99]
