"""The budget of 256 MiB, used up, as somebody sees it who runs the monitor."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from activity_collection import Collection
from activity_library import built

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.clock import Clock
from npuscope.monitor.agent.collector import Collector
from npuscope.monitor.agent.commands import Command
from npuscope.monitor.agent.log import Log
from npuscope.monitor.protocol.standing import Standing

PER_BUFFER = (8 << 20) // 56


class Later(Clock):
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class Stuck:
    """A processor that takes nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.taken = 0
        self.counts: Mapping[str, int] = {}

    def add(self, batch: Batch) -> None:
        self.may.wait()
        self.taken += len(batch)

    def report(self, now: int) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def test_what_the_budget_costs_is_counted_logged_and_reported(collection: Collection, tmp_path: Path) -> None:
    assert built()
    log, processor, clock, told = Log(str(tmp_path)), Stuck(), Later(), list[Standing]()
    collector = Collector(lambda: [collection.source], lambda command, run: processor, log, told.append, clock=clock)
    collector.handle(Command(start=True, interval=3600, kinds=frozenset({Kind.KERNEL})))
    collection.library.emit([Kind.KERNEL], 0, 40 * PER_BUFFER)
    processor.may.set()
    dropped = collection.library.c.fake_dropped()
    assert 0 < dropped <= 7 * PER_BUFFER
    clock.ahead = 3600
    collector.tick()
    assert told[-1].lost == dropped
    collector.handle(Command(stop=True))
    assert processor.taken == 40 * PER_BUFFER - dropped
    assert (told[-1].running, told[-1].lost) == (False, dropped)
    assert log.path is not None
    lines = log.path.read_text().splitlines()
    reason = f"mspti: requests for a buffer while all 32 of 8 MiB were full {dropped}"
    assert [line for line in lines if line.endswith(f"lost so far: {reason}")]
    assert [line for line in lines if line.endswith(f"lost: {reason}")]


def test_kinds_that_are_not_given_are_named_in_the_log(collection: Collection, tmp_path: Path) -> None:
    collection.library.c.fake_enable_result(Kind.MEMCPY, 6)
    log, processor = Log(str(tmp_path)), Stuck()
    processor.may.set()
    collector = Collector(lambda: [collection.source], lambda command, run: processor, log, lambda standing: None)
    collector.handle(Command(start=True, kinds=frozenset({Kind.KERNEL, Kind.MEMCPY})))
    collection.library.emit([Kind.KERNEL, Kind.MEMCPY], 0, 10)
    collector.handle(Command(stop=True))
    assert processor.taken == 5
    assert log.path is not None
    said = log.path.read_text()
    assert f"must be preloaded for MemCpy: start the job with LD_PRELOAD={built()}\n" in said
    assert "nothing in this process gives MemCpy\n" in said
    assert "the monitor collects Kernel until told to stop" in said
