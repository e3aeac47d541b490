"""Starting, changing and stopping; the budget of buffers."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from activity_collection import ALL, Collection
from activity_library import built, numbers

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.sources import mspti
from npuscope.monitor.agent.sources.mspti import MsptiSource
from npuscope.monitor.agent.sources.source import Unavailable


def wait_for(condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_start_and_stop(collection: Collection) -> None:
    c = collection.library.c
    collection.start(frozenset({Kind.KERNEL, Kind.API}))
    assert c.fake_subscribed() == 1
    assert c.fake_off_domain() == b"communication"
    assert c.fake_period() == 1000
    assert {kind for kind in Kind if c.fake_enabled(kind)} == {Kind.KERNEL, Kind.API}
    collection.library.emit([Kind.KERNEL], 0, 10)
    collection.source.stop()
    collection.source.stop()
    assert collection.counts == {Kind.KERNEL: 10}
    assert (c.fake_subscribed(), c.fake_period()) == (0, 0)
    assert not any(c.fake_enabled(kind) for kind in Kind)
    assert not [thread for thread in threading.enumerate() if thread.name == "npuscope-mspti"]


def test_other_kinds_while_it_runs(collection: Collection) -> None:
    both = [Kind.KERNEL, Kind.MEMCPY]
    collection.start(frozenset({Kind.KERNEL}))
    collection.library.emit(both, 0, 100)
    collection.source.change(frozenset({Kind.MEMCPY}))
    collection.library.emit(both, 100, 100)
    collection.source.change(frozenset())
    collection.library.emit(both, 200, 100)
    collection.source.stop()
    collection.assert_is(Kind.KERNEL, numbers(both, Kind.KERNEL, 0, 100))
    collection.assert_is(Kind.MEMCPY, numbers(both, Kind.MEMCPY, 100, 100))


def test_again_and_again(collection: Collection) -> None:
    collection.start()
    collection.source.stop()
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(100):
        collection.start()
        collection.library.emit([Kind.KERNEL], 50 * turn, 50)
        collection.source.stop()
    collection.assert_is(Kind.KERNEL, np.arange(5000))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [thread for thread in threading.enumerate() if thread.name == "npuscope-mspti"]


def test_starting_twice_is_starting_anew(collection: Collection) -> None:
    collection.start(frozenset({Kind.KERNEL}))
    collection.start(frozenset({Kind.API}))
    collection.library.emit([Kind.KERNEL, Kind.API], 0, 10)
    collection.source.flush()
    assert collection.counts == {Kind.API: 5}


def test_buffers_are_lent_again(collection: Collection) -> None:
    collection.start()
    for turn in range(100):
        collection.library.emit([Kind.KERNEL], turn, 1)
        collection.source.flush()
    assert collection.library.c.fake_requests() == 100
    assert collection.library.c.fake_most_lent() == 1
    collection.assert_is(Kind.KERNEL, np.arange(100))


def test_the_budget_of_buffers_is_kept_and_what_it_costs_is_counted(collection: Collection) -> None:
    # 149,796 kernels of 56 bytes fill 8 MiB. Nobody takes what is delivered, so that 32 buffers fill up.
    a_buffer = (8 << 20) // 56
    emitted = 40 * a_buffer
    c = collection.library.c
    collection.gate.clear()
    collection.start()
    started = time.monotonic()
    collection.library.emit([Kind.KERNEL], 0, emitted)
    took = time.monotonic() - started
    assert c.fake_most_lent() == 1  # the library holds one at a time; the others wait to be read
    dropped = c.fake_dropped()
    # One buffer was read before delivery stopped; 32 more are full.
    assert emitted - dropped == 33 * a_buffer
    # As the real one, the library asks again for every record that it has no room for.
    assert collection.source.losses == {mspti.REFUSED: dropped}
    assert took < 60  # the job went on: it never waited for a buffer
    collection.gate.set()
    collection.source.flush()
    collection.library.emit([Kind.KERNEL], emitted, 1000)
    collection.source.stop()
    collection.assert_is(Kind.KERNEL, np.r_[: 33 * a_buffer, emitted : emitted + 1000])
    assert collection.source.losses == {mspti.REFUSED: dropped}
    collection.start()
    assert not collection.source.losses


def test_somebody_else_has_the_library(collection: Collection) -> None:
    collection.library.c.fake_subscribe_result(2)
    with pytest.raises(Unavailable, match="has its one subscriber already: .*msprof or torch_npu.profiler.* stop that"):
        collection.start()
    collection.library.c.fake_subscribe_result(0)
    collection.start()


def test_one_source_at_a_time(collection: Collection) -> None:
    collection.start()
    with pytest.raises(Unavailable, match="collects from the activity library already"):
        MsptiSource().start(ALL, collection.strings, lambda batch: None)


@pytest.mark.parametrize("others", ["", "/usr/lib/libjemalloc.so"])
def test_not_preloaded(collection: Collection, monkeypatch: pytest.MonkeyPatch, others: str) -> None:
    monkeypatch.setenv("LD_PRELOAD", others)
    for kind in Kind:
        collection.library.c.fake_enable_result(kind, 6)
    with pytest.raises(Unavailable) as caught:
        collection.start(frozenset({Kind.KERNEL, Kind.MEMCPY}))
    preload = ":".join(filter(None, [str(built()), others]))
    assert str(caught.value) == (
        "the activity library must be preloaded for Kernel, MemCpy: start the job with LD_PRELOAD=" + preload
    )
    assert collection.library.c.fake_subscribed() == 0


def test_some_kinds_without_preloading(collection: Collection) -> None:
    for kind in (Kind.HCCL, Kind.MEMORY, Kind.MEMSET, Kind.MEMCPY):
        collection.library.c.fake_enable_result(kind, 6)
    collection.library.c.fake_enable_result(Kind.NODE_API, 1)
    collection.start()
    collection.library.emit([Kind.KERNEL, Kind.MEMCPY], 0, 10)
    collection.source.flush()
    assert collection.counts == {Kind.KERNEL: 5}
    preload = f"for Hccl, Memory, MemSet, MemCpy: start the job with LD_PRELOAD={built()}"
    assert collection.source.refusals == {
        **dict.fromkeys(
            (Kind.HCCL, Kind.MEMORY, Kind.MEMSET, Kind.MEMCPY), f"the activity library must be preloaded {preload}"
        ),
        Kind.NODE_API: "the activity library refuses NodeAPI: it does not know this (result 1)",
    }
    collection.library.c.fake_enable_result(Kind.NODE_API, 0)
    collection.source.change(frozenset({Kind.NODE_API}))
    assert collection.source.refusals == {}


def test_other_failures(collection: Collection) -> None:
    collection.library.c.fake_subscribe_result(999)
    with pytest.raises(Unavailable, match=r"refuses msptiSubscribe: an error inside it \(result 999\)"):
        collection.start()
    collection.library.c.fake_subscribe_result(0)
    collection.library.c.fake_register_result(77)
    with pytest.raises(Unavailable, match=r"refuses msptiActivityRegisterCallbacks: an error \(result 77\)"):
        collection.start()
    assert collection.library.c.fake_subscribed() == 0


def test_a_delivery_that_hangs_does_not_stop_recording(collection: Collection) -> None:
    collection.gate.clear()
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, 10)
    collection.library.c.msptiActivityFlushAll(1)
    collection.library.emit([Kind.KERNEL], 10, 10)
    assert not collection.batches
    collection.gate.set()
    collection.source.flush()
    collection.assert_is(Kind.KERNEL, np.arange(20))


def test_full_buffers_are_delivered_without_a_flush(collection: Collection) -> None:
    a_buffer = (8 << 20) // 56
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, a_buffer + 1)
    wait_for(lambda: collection.counts == {Kind.KERNEL: a_buffer})
