"""Marker records from our `mstx` calls."""

from __future__ import annotations

import os
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from npuscope import mstx
from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import mstx as module
from npuscope.monitor.agent.sources.mstx import MstxSource
from npuscope.monitor.agent.sources.streams import Streams

MARKER = frozenset({Kind.MARKER})
PATIENCE = 60.0


class Heard:
    """A source that runs, and what it has delivered."""

    def __init__(self, source: MstxSource) -> None:
        self.source = source
        self.strings = Strings()
        self.batches: list[Batch] = []
        source.start(MARKER, self.strings, self.batches.append)

    def stop(self) -> Batch:
        """All records."""
        self.source.stop()
        return joined(self.batches)

    def texts(self, column: Any) -> list[str]:
        return [self.strings.texts[number] for number in column]


@pytest.fixture
def heard() -> Iterator[Heard]:
    found = Heard(MstxSource())
    yield found
    found.source.stop()


def test_a_range_and_a_mark(heard: Heard) -> None:
    """Each record with its time, in the order of the calls; only the host has a side without a stream."""
    before = time.time_ns()
    number = mstx.range_start("step 1", None, "train")
    mstx.mark("now")
    mstx.range_end(number)
    after = time.time_ns()
    found = heard.stop()
    assert found["flag"].tolist() == [Flag.START, Flag.INSTANT, Flag.END]
    assert heard.texts(found["name"]) == ["step 1", "now", "step 1"]
    assert heard.texts(found["domain"]) == ["train", "default", "train"]
    assert found["id"][0] == found["id"][2] == number != found["id"][1]
    times = found["time"].tolist()
    assert times == sorted(times) and before <= times[0] and times[-1] <= after
    assert set(found["process"]) == {os.getpid()} and set(found["thread"]) == {threading.get_native_id()}
    assert set(found["side"]) == {Side.HOST} and set(found["device"]) == set(found["stream"]) == {-1}


def test_nothing_is_taken_before_or_after(heard: Heard) -> None:
    """A stopped source starts anew; what was open before it started has no start, and stopping twice is nothing."""
    mstx.mark("first")
    heard.stop()
    heard.stop()
    mstx.mark("between")
    assert heard.texts(joined(heard.batches)["name"]) == ["first"]
    open_range = mstx.range_start("before")
    again = Heard(heard.source)
    mstx.range_end(open_range)
    mstx.mark("second")
    found = again.stop()
    assert again.texts(found["name"]) == ["before", "second"] and found["flag"].tolist() == [Flag.END, Flag.INSTANT]


def test_kinds_change(heard: Heard) -> None:
    """While markers are not wanted, nothing is noted; what was noted stays."""
    mstx.mark("a")
    heard.source.change(frozenset({Kind.KERNEL}))
    mstx.mark("b")
    heard.source.change(MARKER)
    mstx.mark("c")
    assert heard.texts(heard.stop()["name"]) == ["a", "c"]


def test_threads_are_told_apart_and_flushed_in_order(heard: Heard) -> None:
    """Ranges that start in one thread and end in the next: no end is ever delivered before its start."""
    handed: list[int] = []
    started: list[int] = []
    stop = threading.Event()

    def produce() -> None:
        while len(started) < 3000 or len(heard.batches) < 3:  # flushed meanwhile, however slow that is
            started.append(mstx.range_start("x"))
            handed.append(started[-1])
        stop.set()

    def consume() -> None:
        while not stop.is_set() or handed:
            while handed:
                mstx.range_end(handed.pop())

    threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
    for thread in threads:
        thread.start()
    while threads[1].is_alive():
        heard.source.flush()
    for thread in threads:
        thread.join()
    found = heard.stop()
    assert len(found) == 2 * len(started) and len(set(found["thread"])) == 2
    starts, ends = (np.flatnonzero(found["flag"] == flag) for flag in (Flag.START, Flag.END))
    place = dict(zip(found["id"][starts].tolist(), starts.tolist(), strict=True))
    assert all(place[number] < at for number, at in zip(found["id"][ends].tolist(), ends.tolist(), strict=True))


def test_many_records_come_by_themselves(heard: Heard) -> None:
    """Nobody need flush: a full list wakes the source's own thread."""
    for _ in range(module.WAKE + 1):
        mstx.mark("x")
    deadline = time.monotonic() + PATIENCE
    while not heard.batches:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(heard.stop()) == module.WAKE + 1 and heard.source.losses == {}


def test_what_is_too_much_is_counted(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next start begins at none."""
    monkeypatch.setattr(module, "WAKE", 10)
    monkeypatch.setattr(module, "MOST", 10)
    for _ in range(25):
        mstx.mark("x")
    assert len(heard.stop()) == 10
    assert heard.source.losses == {"markers beyond what may wait": 15}
    Heard(heard.source).source.stop()
    assert heard.source.losses == {}


def test_a_thread_that_has_ended_is_forgotten_but_not_its_losses(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    monkeypatch.setattr(module, "WAKE", 1)
    thread = threading.Thread(target=lambda: [mstx.mark("x") for _ in range(3)])
    thread.start()
    thread.join()
    heard.source.flush()
    assert heard.source._logs == [] and heard.source.losses == {"markers beyond what may wait": 2}


def test_a_stream_of_a_simulated_device_has_its_side() -> None:
    """The device comes to the mark when its stream is free; a stream that is none counts as no stream."""
    streams = Streams()
    streams.device = 3
    ahead = time.time_ns() + 10**12
    streams.place(3, 7, ahead, 1000)
    heard = Heard(MstxSource(streams))
    number = mstx.range_start("x", types.SimpleNamespace(npu_stream=7))
    mstx.range_end(number)
    mstx.mark("free", 8)
    mstx.mark("none", object())
    assert streams.watched
    found = heard.stop()
    assert not streams.watched
    device = found.where(found["side"] == Side.DEVICE)
    # In the order of their times: the stream that is free comes to its mark first.
    assert device["flag"].tolist() == [Flag.INSTANT_WITH_DEVICE, Flag.START_WITH_DEVICE, Flag.END_WITH_DEVICE]
    assert device["time"][1:].tolist() == [ahead + 1000] * 2 and device["time"][0] < ahead
    assert device["device"].tolist() == [3, 3, 3] and device["stream"].tolist() == [8, 7, 7]
    assert set(device["process"]) == set(device["thread"]) == {-1}
    host = found.where(found["side"] == Side.HOST)
    assert host["flag"].tolist() == [
        Flag.START_WITH_DEVICE, Flag.END_WITH_DEVICE, Flag.INSTANT_WITH_DEVICE, Flag.INSTANT
    ]  # fmt: skip
    assert host["id"].tolist()[:3] == device["id"].tolist()[1:] + device["id"].tolist()[:1]


def test_a_forked_child_is_silent(heard: Heard) -> None:
    """Its calls cost nothing and go nowhere: whoever listens has its threads in the parent."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        mstx.mark("child")
        os.write(write, b"%d" % sum(len(log.records) for log in heard.source._logs))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"0"
    mstx.mark("parent")
    assert heard.texts(heard.stop()["name"]) == ["parent"]
