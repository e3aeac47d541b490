"""The monitors of the vendor's ``mspti`` package: each gives the records of one kind to a callback.

They are over the same sources as the agent's monitor, so that they run where a simulated device or a GPU is. Records
come when a source delivers them: at the latest with `flush_all`, with the period of `flush_period`, and at the end.
"""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent import equipment, occupancy
from npuscope.monitor.agent.commands import Refused
from npuscope.monitor.agent.crew import Crew
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.vendor.mspti_data import (
    CommunicationData,
    HcclData,
    KernelData,
    MsptiCommunicationDataType,
    MsptiResult,
)
from npuscope.monitor.agent.vendor.mspti_marks import Marks

RUNS = "monitors of mspti are collecting in this process, and the two exclude each other"
MOST_BUFFER = 256
"""Megabytes, as the vendor documents it."""


class _Hub:
    """The sources of this process, shared by the monitors that run."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.log = Log()
        self._crew = Crew(lambda: equipment.sources(self.log), self.log)
        self._strings = Strings()
        self._takers: dict[Kind, BaseMonitor] = {}
        self._lock = threading.RLock()
        self._ticking: threading.Event | None = None
        occupancy.enter(_Hub, lambda: RUNS if self._takers else "")

    def join(self, kind: Kind, monitor: BaseMonitor) -> MsptiResult:
        """Have the records of a kind delivered to a monitor."""
        with self._lock:
            if kind in self._takers or occupancy.in_the_way_of(_Hub):
                return MsptiResult.MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
            self._takers[kind] = monitor
            try:
                self._collect()
            except Refused:
                del self._takers[kind]
                return MsptiResult.MSPTI_ERROR_INNER
            if kind not in self._crew.kinds:
                self.leave(kind, monitor)
                return MsptiResult.MSPTI_ERROR_DEVICE_OFFLINE
        return MsptiResult.MSPTI_SUCCESS

    def leave(self, kind: Kind, monitor: BaseMonitor) -> MsptiResult:
        """Deliver the rest to a monitor, and nothing more."""
        with self._lock:
            if self._takers.get(kind) is not monitor:
                return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
            self._crew.flush()
            if self._takers.keys() == {kind}:
                self._crew.stop()
                del self._takers[kind]
            else:
                # The source may give its rest when it is told of the change, so the taker goes afterwards.
                rest = frozenset(self._takers) - {kind}
                self._crew.change(rest, self._strings, self._deliver)
                del self._takers[kind]
        return MsptiResult.MSPTI_SUCCESS

    def flush(self) -> None:
        """Have what is complete delivered."""
        with self._lock:
            self._crew.flush()

    def period(self, seconds: float) -> None:
        """Flush from now on with this period; 0: no longer."""
        with self._lock:
            if self._ticking is not None:
                self._ticking.set()
                self._ticking = None
            if seconds:
                self._ticking = threading.Event()
                words = {"target": self._tick, "args": (self._ticking, seconds)}
                threading.Thread(name="MsptiFlush", daemon=True, **words).start()  # type: ignore[arg-type]

    def _tick(self, over: threading.Event, seconds: float) -> None:
        while not over.wait(seconds):
            self.flush()

    def _collect(self) -> None:
        kinds = frozenset(self._takers)
        if self._crew.kinds:
            self._crew.change(kinds, self._strings, self._deliver)
        else:
            self._strings = Strings()
            self._crew.start(kinds, self._strings, self._deliver)

    def _deliver(self, batch: Batch) -> None:
        monitor = self._takers.get(batch.kind)
        if monitor is None:
            return
        try:
            monitor.take(batch, self._strings.texts)
        except Exception as error:  # the callback's own
            self.log.warn_once(f"a callback of {type(monitor).__name__} failed: {error!r}")


_hub: _Hub | None = None


def _shared() -> _Hub:
    """The hub of this process."""
    global _hub
    if _hub is None or _hub.pid != os.getpid():
        _hub = _Hub()
    return _hub


def flush_all() -> MsptiResult:
    """Have what is complete given to the callbacks now."""
    _shared().flush()
    return MsptiResult.MSPTI_SUCCESS


def flush_period(period_ms: int) -> MsptiResult:
    """Do so with this period from now on; 0: no longer."""
    if not isinstance(period_ms, int) or period_ms < 0:
        return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
    _shared().period(period_ms / 1000)
    return MsptiResult.MSPTI_SUCCESS


class BaseMonitor(ABC):
    """What all monitors can do."""

    KIND: Kind

    @abstractmethod
    def take(self, batch: Batch, texts: list[str]) -> None:
        """Give records to the callback."""

    def stop(self) -> MsptiResult:
        """Give the rest to the callback and end."""
        return _shared().leave(self.KIND, self)

    @classmethod
    def flush_all(cls) -> MsptiResult:
        """Have what is complete given to the callbacks now."""
        return flush_all()

    @classmethod
    def flush_period(cls, period_ms: int) -> MsptiResult:
        """Do so with this period from now on; 0: no longer."""
        return flush_period(period_ms)

    @classmethod
    def set_buffer_size(cls, size: int) -> MsptiResult:
        """The library's buffers in megabytes, 256 at most. The sources here have buffers of their own size, and how
        much may wait in all is the same: the log says so."""
        if not isinstance(size, int) or not 0 < size <= MOST_BUFFER:
            return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
        _shared().log.warn_once(f"set_buffer_size({size}) changes nothing: buffers are 32 of 8 MiB here")
        return MsptiResult.MSPTI_SUCCESS


class _OneCallback(BaseMonitor):
    """A monitor with one callback."""

    def __init__(self) -> None:
        self._callback: Callable[[Any], None] | None = None

    def start(self, cb: Callable[[Any], None]) -> MsptiResult:
        """Give each record to `cb` from now on."""
        if not callable(cb):
            return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
        self._callback = cb
        return _shared().join(self.KIND, self)

    def take(self, batch: Batch, texts: list[str]) -> None:
        """Give records to the callback."""
        for record in self.records(batch, texts):
            if self._callback is not None:
                self._callback(record)

    @abstractmethod
    def records(self, batch: Batch, texts: list[str]) -> list[Any]:
        """The records of a batch in the vendor's classes."""


class KernelMonitor(_OneCallback):
    """Computing operators."""

    KIND = Kind.KERNEL

    def records(self, batch: Batch, texts: list[str]) -> list[KernelData]:
        """The records of a batch in the vendor's class."""
        rows = _rows(batch, "start", "end", "device", "stream", "correlation", "type", "name")
        return [
            KernelData(start=start, end=end, device_id=device, stream_id=stream, correlation_id=correlation,
                       type=texts[kind], name=texts[name])
            for start, end, device, stream, correlation, kind, name in rows
        ]  # fmt: skip


class HcclMonitor(_OneCallback):
    """Communication operators with their bandwidth."""

    KIND = Kind.HCCL

    def records(self, batch: Batch, texts: list[str]) -> list[HcclData]:
        """The records of a batch in the vendor's class."""
        rows = _rows(batch, "start", "end", "device", "stream", "bandwidth", "name", "comm")
        return [
            HcclData(start=start, end=end, device_id=device, stream_id=stream, bandwidth=bandwidth, name=texts[name],
                     comm_name=texts[comm])
            for start, end, device, stream, bandwidth, name, comm in rows
        ]  # fmt: skip


class CommunicationMonitor(_OneCallback):
    """Communication operators with what they moved."""

    KIND = Kind.COMMUNICATION

    def records(self, batch: Batch, texts: list[str]) -> list[CommunicationData]:
        """The records of a batch in the vendor's class."""
        names = "data_type", "count", "device", "stream", "start", "end", "algorithm", "name", "comm", "correlation"
        return [
            CommunicationData(
                data_type=_data_type(data_type), count=count, device_id=device, stream_id=stream, start=start, end=end,
                alg_type=texts[algorithm], name=texts[name], comm_name=texts[comm], correlation_id=correlation,
            )
            for data_type, count, device, stream, start, end, algorithm, name, comm, correlation in _rows(batch, *names)
        ]  # fmt: skip


class MstxMonitor(BaseMonitor):
    """Ranges and marks; those of a domain may be left out."""

    KIND = Kind.MARKER

    def __init__(self) -> None:
        self._mark_cb: Callable[[Any], None] | None = None
        self._range_cb: Callable[[Any], None] | None = None
        self._marks = Marks()
        self._left_out: set[str] = set()

    def start(
        self, mark_cb: Callable[[Any], None] | None = None, range_cb: Callable[[Any], None] | None = None
    ) -> MsptiResult:
        """Give each mark to `mark_cb` and each range that is over to `range_cb` from now on; one may be left out."""
        if not callable(mark_cb) and not callable(range_cb):
            return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
        self._mark_cb = mark_cb if callable(mark_cb) else None
        self._range_cb = range_cb if callable(range_cb) else None
        self._marks = Marks()
        return _shared().join(self.KIND, self)

    def enable_domain(self, domain_name: str) -> MsptiResult:
        """Give what is in this domain again; at first all are."""
        if not isinstance(domain_name, str) or not domain_name:
            return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
        flush_all()
        self._left_out.discard(domain_name)
        return MsptiResult.MSPTI_SUCCESS

    def disable_domain(self, domain_name: str) -> MsptiResult:
        """Leave out what is in this domain."""
        if not isinstance(domain_name, str) or not domain_name:
            return MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
        flush_all()
        self._left_out.add(domain_name)
        return MsptiResult.MSPTI_SUCCESS

    def take(self, batch: Batch, texts: list[str]) -> None:
        """Give marks and ranges to the callbacks."""
        for callback, found in (
            (self._mark_cb, self._marks.marks(batch, texts)), (self._range_cb, self._marks.ranges(batch, texts))
        ):  # fmt: skip
            for record in found:
                if callback is not None and record.domain not in self._left_out:
                    callback(record)


def _rows(batch: Batch, *names: str) -> Any:
    return zip(*(batch[name].tolist() for name in names), strict=True)


def _data_type(number: int) -> Any:
    with contextlib.suppress(ValueError):
        return MsptiCommunicationDataType(number)
    return number
