"""TBufPool: pools of a pipe and of a pool, shared pools, limits, reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.trace.schema import OPCODES

F32 = np.dtype(np.float32)


def pool(device: Any, text: str = "!ascendc.tbuf_pool<vecin, 4>") -> Any:
    """A TBufPool."""
    return device.run("tBufPool", result_type=text)


def queue(device: Any, owner: Any, number: int, nbytes: int, position: str = "vecin") -> Any:
    """A queue with memory of a pool."""
    made = device.run("queue", result_type=f"!ascendc.queue<{position}, 1>")
    device.run("tbuf_pool.init_queue", owner, made, number, nbytes)
    return made


def buffer(device: Any, owner: Any, nbytes: int, position: str = "veccalc") -> Any:
    """A TBuf with memory of a pool."""
    made = device.run("tbuf", result_type=f"!ascendc.tbuf<{position}>")
    device.run("tbuf_pool.init_buffer", owner, made, nbytes)
    return made


def codes(device: Any) -> list[str]:
    """Codes of what the machine reported."""
    return [fault.code for fault in device.recorder.faults]


def test_nested_pools(device: Any) -> None:
    """The arrangement of page InitBufPool: a pool of the pipe, a queue and two pools on the same bytes inside it."""
    pipe = device.run("pipe")
    first = device.run("queue", result_type="!ascendc.queue<vecin, 1>")
    device.run("pipe.init_queue", pipe, first, 1, 64)
    outer, one, two = pool(device), pool(device), pool(device)
    assert device.run("pipe.init_buf_pool", pipe, outer, 4096) == 1
    source = queue(device, outer, 1, 1000)
    device.run("tbuf_pool.init_buf_pool", outer, one, 2048)
    device.run("tbuf_pool.init_buf_pool", outer, two, 2000, one)
    assert source.slots[0].address == 64
    assert one.start == two.start == 64 + 1024
    left, right = queue(device, one, 2, 512), buffer(device, two, 100)
    assert [slot.address for slot in left.slots] == [1088, 1600]
    assert (right.address, right.size) == (1088, 128)
    after = device.run("queue", result_type="!ascendc.queue<vecout, 1>")
    device.run("pipe.init_queue", pipe, after, 1, 32)
    assert after.slots[0].address == 64 + 4096
    assert codes(device) == []


def test_pool_too_small(device: Any) -> None:
    """Past its own end, and past the pipe's memory."""
    pipe = device.run("pipe")
    small = pool(device)
    device.run("pipe.init_buf_pool", pipe, small, 100)
    queue(device, small, 1, 96)
    assert codes(device) == []
    buffer(device, small, 64)
    facts = device.recorder.faults[0].facts
    assert codes(device) == ["over_capacity"]
    assert (facts["required"], facts["available"]) == (160, 128)
    device.run("pipe.init_buf_pool", pipe, pool(device), 200_000)
    assert codes(device) == ["over_capacity", "over_capacity"]


def test_number_of_buffers(device: Any) -> None:
    """bufIDSize 4: the fifth buffer is one too many."""
    pipe, outer = device.run("pipe"), pool(device)
    device.run("pipe.init_buf_pool", pipe, outer, 4096)
    queue(device, outer, 2, 32)
    queue(device, outer, 2, 32)
    assert codes(device) == []
    buffer(device, outer, 32)
    assert codes(device) == ["queue_limit"]
    assert device.recorder.faults[0].facts["required"] == 5


@pytest.mark.parametrize("most", [0, 17])
def test_size_of_the_id_table(device: Any, most: int) -> None:
    """At most 16 (page TBufPool InitBuffer)."""
    pool(device, f"!ascendc.tbuf_pool<vecin, {most}>")
    assert codes(device) == ["bad_operand"]


def test_shared_pool_must_fit(make_device: Any) -> None:
    """Not longer than the pool it shares, and in the same memory."""
    device = make_device("310P3")
    pipe, one = device.run("pipe"), pool(device)
    device.run("pipe.init_buf_pool", pipe, one, 256)
    device.run("pipe.init_buf_pool", pipe, pool(device), 512, one)
    device.run("pipe.init_buf_pool", pipe, pool(device, "!ascendc.tbuf_pool<a1, 4>"), 128, one)
    assert codes(device) == ["bad_operand", "bad_operand"]


def test_buffer_of_another_memory(make_device: Any) -> None:
    """A pool in UB cannot hold a buffer at A1."""
    device = make_device("310P3")
    one = pool(device)
    device.run("pipe.init_buf_pool", device.run("pipe"), one, 256)
    queue(device, one, 1, 32, "a1")
    assert codes(device) == ["bad_operand"]


def test_reset_ends_events_and_keeps_buffers(device: Any) -> None:
    """The consumers of freed buffers are waited for; then a pool on the same bytes may fill them. The first pool's
    queues work again afterwards."""
    pipe, one, two = device.run("pipe"), pool(device), pool(device)
    device.run("pipe.init_buf_pool", pipe, one, 512)
    device.run("pipe.init_buf_pool", pipe, two, 512, one)
    que, other = queue(device, one, 1, 256), queue(device, two, 1, 256)

    def round_trip(which: Any) -> int:
        tensor = device.run("que_bind.alloc_tensor", which, result_dtype=F32)
        device.run("que_bind.enque_tensor", which, tensor)
        device.run("que_bind.free_tensor", which, device.run("que_bind.deque_tensor", which, result_dtype=F32))
        return tensor.address

    first = round_trip(que)
    device.trace()
    device.run("tbuf_pool.reset", one)
    assert [OPCODES.names[code] for code in device.trace().column("opcode")] == ["wait_flag", "pool_reset"]
    assert round_trip(other) == first
    device.run("tbuf_pool.reset", two)
    assert round_trip(que) == first and codes(device) == []
    device.run("pipe.destroy", pipe)
    assert que.slots == [] and codes(device) == []
