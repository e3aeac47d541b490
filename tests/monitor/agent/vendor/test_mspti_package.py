"""The monitors of the `mspti` package, over real ranges and a source that stands in for a device."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from npuscope import mstx
from npuscope.monitor.activity.batch import batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent import equipment, occupancy
from npuscope.monitor.agent.sources.mstx import MstxSource
from npuscope.monitor.agent.sources.source import Deliver, Source
from npuscope.monitor.agent.vendor import mspti
from npuscope.monitor.agent.vendor.mspti import CommunicationMonitor, HcclMonitor, KernelMonitor, MstxMonitor
from npuscope.monitor.agent.vendor.mspti_data import (
    CommunicationData,
    HcclData,
    KernelData,
    MsptiActivityFlag,
    MsptiActivityKind,
    MsptiCommunicationDataType,
    MsptiResult,
)

GOOD, BAD = MsptiResult.MSPTI_SUCCESS, MsptiResult.MSPTI_ERROR_INVALID_PARAMETER
PATIENCE = 60.0


class Device:
    """Gives one record of each kind asked for, whenever it is flushed."""

    name = "device"
    kinds = frozenset({Kind.KERNEL, Kind.COMMUNICATION, Kind.HCCL})
    losses: Mapping[str, int] = {}

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        self.wanted, self.strings, self.deliver = kinds, strings, deliver

    def change(self, kinds: frozenset[Kind]) -> None:
        self.wanted = kinds

    def flush(self) -> None:
        number = self.strings.number
        common = {"start": [10], "end": [30], "device": [1], "stream": [2], "name": [number("op")]}
        made = {
            Kind.KERNEL: {"correlation": [5], "type": [number("KERNEL_AICORE")]},
            Kind.HCCL: {"bandwidth": [12.5], "comm": [number("group")]},
            Kind.COMMUNICATION: {"data_type": [3], "count": [8], "algorithm": [number("RING")],
                                 "comm": [number("group")], "correlation": [6]},
        }  # fmt: skip
        for kind in self.wanted & self.kinds:
            self.deliver(batch(kind, common | made[kind]))

    def stop(self) -> None:
        """Nothing is left."""


@pytest.fixture(autouse=True)
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Source]]:
    found: list[Source] = [MstxSource(), Device()]
    monkeypatch.setattr(equipment, "sources", lambda log: found)
    monkeypatch.setattr(mspti, "_hub", None)
    monkeypatch.setenv("MSMONITOR_LOG_PATH", str(tmp_path))
    yield found
    mspti.flush_period(0)
    occupancy.leave(mspti._Hub)


def test_records_of_a_device() -> None:
    """Three monitors at the same time, each with its own kind; when one stops, the others go on."""
    found: dict[str, list[Any]] = {"kernel": [], "hccl": [], "communication": []}
    kernel, hccl, communication = KernelMonitor(), HcclMonitor(), CommunicationMonitor()
    assert kernel.start(found["kernel"].append) == GOOD
    assert hccl.start(found["hccl"].append) == GOOD
    assert communication.start(found["communication"].append) == GOOD
    assert kernel.flush_all() == GOOD
    assert found["kernel"] == [KernelData(MsptiActivityKind.MSPTI_ACTIVITY_KIND_KERNEL, 10, 30, 1, 2, 5,
                                          "KERNEL_AICORE", "op")]  # fmt: skip
    assert found["hccl"] == [HcclData(MsptiActivityKind.MSPTI_ACTIVITY_KIND_HCCL, 10, 30, 1, 2, 12.5, "op", "group")]
    assert found["communication"] == [CommunicationData(
        MsptiActivityKind.MSPTI_ACTIVITY_KIND_COMMUNICATION,
        MsptiCommunicationDataType.MSPTI_ACTIVITY_COMMUNICATION_FP16, 8, 1, 2, 10, 30, "RING", "op", "group", 6,
    )]  # fmt: skip
    assert kernel.stop() == GOOD
    before = len(found["kernel"])
    assert mspti.flush_all() == GOOD
    assert len(found["kernel"]) == before and len(found["hccl"]) > 2
    assert hccl.stop() == GOOD and communication.stop() == GOOD and communication.stop() == BAD


def test_ranges_and_marks() -> None:
    """Each with what its start said; a domain can be left out for a while."""
    marks: list[Any] = []
    ranges: list[Any] = []
    monitor = MstxMonitor()
    assert monitor.start(marks.append, ranges.append) == GOOD
    number = mstx.range_start("step", None, "train")
    mstx.mark("now")
    mstx.range_end(number)
    assert monitor.disable_domain("train") == GOOD
    mstx.mark("hidden", None, "train")
    assert monitor.enable_domain("train") == GOOD
    mstx.mark("seen", None, "train")
    assert monitor.stop() == GOOD
    assert [(mark.name, mark.domain) for mark in marks] == [("now", "default"), ("seen", "train")]
    assert marks[0].flag == MsptiActivityFlag.MSPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS
    (step,) = ranges
    assert (step.name, step.domain, step.id, step.source_kind) == ("step", "train", number, 0)
    assert step.object_id.thread_id == threading.get_native_id() and step.start < marks[0].timestamp < step.end
    assert monitor.enable_domain("") == BAD and monitor.disable_domain("") == BAD


def test_only_ranges() -> None:
    """As the vendor's example has it, one of the two callbacks may be missing."""
    ranges: list[Any] = []
    monitor = MstxMonitor()
    assert monitor.start(range_cb=ranges.append) == GOOD
    mstx.mark("m")
    mstx.range_end(mstx.range_start("r"))
    assert monitor.stop() == GOOD
    assert [found.name for found in ranges] == ["r"]


def test_a_period() -> None:
    """Records come without being asked for."""
    came = threading.Event()
    monitor = KernelMonitor()
    assert monitor.start(lambda record: came.set()) == GOOD
    assert mspti.flush_period(5) == GOOD
    assert came.wait(PATIENCE)
    assert mspti.flush_period(0) == GOOD and mspti.flush_period(-1) == BAD
    assert monitor.stop() == GOOD


def test_what_is_refused(sources: list[Source]) -> None:
    """No callback; a second monitor of one kind; somebody else who collects; a kind that nothing gives."""
    monitor = KernelMonitor()
    assert monitor.start(None) == BAD and MstxMonitor().start(None, None) == BAD  # type: ignore[arg-type]
    assert monitor.set_buffer_size(64) == GOOD and monitor.set_buffer_size(257) == BAD
    assert monitor.start(lambda record: None) == GOOD
    assert KernelMonitor().start(lambda record: None) == MsptiResult.MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
    assert "mspti" in occupancy.in_the_way_of(object())
    monitor.stop()
    other = object()
    occupancy.enter(other, lambda: "a trace is running")
    assert monitor.start(lambda record: None) == MsptiResult.MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
    occupancy.leave(other)
    sources[:] = [MstxSource()]
    mspti._hub = None
    assert monitor.start(lambda record: None) == MsptiResult.MSPTI_ERROR_INNER
    marks = MstxMonitor()
    assert marks.start(lambda record: None) == GOOD
    assert monitor.start(lambda record: None) == MsptiResult.MSPTI_ERROR_DEVICE_OFFLINE
    assert marks.stop() == GOOD


def test_a_callback_that_fails(tmp_path: Path) -> None:
    """Nothing is thrown into the job; the log says so once."""
    monitor = MstxMonitor()
    assert monitor.start(lambda record: 1 / 0) == GOOD
    for _ in range(3):
        mstx.mark("x")
        mspti.flush_all()
    assert monitor.stop() == GOOD
    (log,) = (tmp_path / "msmonitor_log").iterdir()
    assert log.read_text().count("ZeroDivisionError") == 1


def test_the_module_is_there_where_a_device_is_simulated() -> None:
    """Programs choose how they time kernels by whether `mspti` can be imported."""
    code = """
from npuscope.monitor.agent.vendor import supply
supply()
try:
    import mspti
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
from npuscope.monitor.agent.sources import sim
sim.connect()
from mspti import KernelData, KernelMonitor, MsptiResult, MstxMonitor, flush_all, flush_period
found = []
monitor = KernelMonitor()
assert monitor.start(found.append) == MsptiResult.MSPTI_SUCCESS
sim.report(sim.Launched("add", "KERNEL_AIVEC", 0, 0, 10, 20, 100))
assert monitor.stop() == MsptiResult.MSPTI_SUCCESS
(kernel,) = found
assert (kernel.name, kernel.type, kernel.start, kernel.end) == ("add", "KERNEL_AIVEC", 20, 120)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd="/tmp")
    assert done.returncode == 0, done.stderr
