"""Measuring at regular moments, and sinks that are slow or broken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from npuscope.monitor.metrics.record import Record
from npuscope.monitor.metrics.sampler import Sampler, next_moment
from npuscope.monitor.sinks.sink import Outlet

RECORD = Record(1.0, "host", {}, {"x": 1})
SECONDS = 20.0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_moments_do_not_drift() -> None:
    assert next_moment(100, 10, 100) == 110
    assert next_moment(100, 10, 100.4) == 110
    assert next_moment(100, 10, 109.99) == 110
    assert next_moment(100, 10, 110) == 120
    assert next_moment(100, 10, 137) == 140  # what was missed is not made up for


class Good:
    name = "good"

    def sample(self) -> Iterator[Record]:
        yield RECORD


class Bad:
    name = "bad"

    def sample(self) -> Iterator[Record]:
        yield RECORD
        raise OSError("the table is gone")


def test_a_source_that_fails_is_named_once_and_the_others_go_on() -> None:
    taken, lines = list[Record](), list[str]()
    sampler = Sampler(0.01, [Bad(), Good()], taken.extend, lines.append)
    sampler.start()
    wait_for(lambda: len(taken) >= 20)
    sampler.stop()
    assert lines == ["no metrics of the bad: the table is gone"]
    count = len(taken)
    time.sleep(0.05)
    assert len(taken) == count


class Sink:
    name = "the test"

    def __init__(self) -> None:
        self.written: list[Record] = []
        self.fails = 0
        self.free = threading.Event()
        self.free.set()
        self.closed = False

    def write(self, records: Sequence[Record]) -> None:
        self.free.wait(SECONDS)
        if self.fails:
            self.fails -= 1
            raise OSError(28, "No space left on device")
        self.written += records

    def close(self) -> None:
        self.closed = True


def test_a_sink_that_fails_is_named_once_and_loses_nothing() -> None:
    sink, lines = Sink(), list[str]()
    sink.fails = 5
    outlet = Outlet(sink, lines.append, waits=(0.01,))
    outlet.start()
    for _ in range(3):
        outlet.offer([RECORD])
    wait_for(lambda: len(sink.written) == 3)
    outlet.stop()
    assert lines == [
        "cannot write metrics to the test, trying again: No space left on device",
        "metrics are written to the test again",
    ]
    assert sink.closed and outlet.lost == 0


def test_a_sink_that_hangs_holds_nobody_up() -> None:
    sink, lines = Sink(), list[str]()
    sink.free.clear()
    outlet = Outlet(sink, lines.append, most=4)
    outlet.start()
    begin = time.monotonic()
    for number in range(100):
        outlet.offer([Record(float(number), "host", {}, {})])
    assert time.monotonic() - begin < 5
    sink.free.set()
    outlet.stop()
    wait_for(lambda: sink.closed)
    assert outlet.lost + len(sink.written) == 100 and sink.written[-1].time == 99
    assert lines == [f"{outlet.lost} records never reached the test"] and outlet.lost >= 94


def test_at_the_end_a_broken_sink_is_not_waited_for() -> None:
    sink, lines = Sink(), list[str]()
    sink.fails = 10**9
    outlet = Outlet(sink, lines.append, waits=(60.0,))
    outlet.start()
    for _ in range(50):
        outlet.offer([RECORD, RECORD])
    wait_for(lambda: bool(lines))
    begin = time.monotonic()
    outlet.stop()
    wait_for(lambda: sink.closed)
    assert time.monotonic() - begin < 10
    assert lines[-1] == "100 records never reached the test"
