"""TQue, TQueBind and TBuf: states, flags, misuse, in-place and position forms, queries, buffers placed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.queue import CONSUMERS, PRODUCERS, leg, positions_in
from npuscope.errors import Unsupported
from npuscope.npu.sync import HardEvent
from npuscope.trace.schema import OPCODES, CoreInfo, CoreType, Origin, Pipe, Role, Space

F32 = np.dtype(np.float32)
GM, VECIN, VECOUT = 0, 9, 10


def queue(device: Any, text: str = "!ascendc.queue<vecin, 1>", number: int = 2, nbytes: int = 128) -> Any:
    """A queue with memory."""
    made = device.run("queue", result_type=text)
    owner = device.core.library.get("pipe") or device.run("pipe")
    device.run("pipe.init_queue", owner, made, number, nbytes)
    device.trace()
    return made


def alloc(device: Any, que: Any) -> Any:
    """AllocTensor<float>."""
    return device.run("que_bind.alloc_tensor", que, result_dtype=F32)


def deque(device: Any, que: Any) -> Any:
    """DeQue<float>."""
    return device.run("que_bind.deque_tensor", que, result_dtype=F32)


def codes(device: Any) -> list[str]:
    """Codes of what the machine reported."""
    return [fault.code for fault in device.recorder.faults]


def flags(device: Any) -> list[tuple[str, str, int]]:
    """(instruction, pipe, event) of the flag rows since the last look."""
    batch = device.trace()
    rows = [
        (OPCODES.names[code], Pipe(pipe).name, int(event))
        for code, pipe, event in zip(batch.column("opcode"), batch.column("pipe"), batch.column("a"), strict=True)
    ]
    return [row for row in rows if row[0] in ("set_flag", "wait_flag")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("!ascendc.queue<vecin, 2>", (["VECIN"], 2)), ("!ascendc.que_bind<vecin, vecout, 0>", (["VECIN", "VECOUT"], 0)),
     ("!ascendc.tbuf<veccalc>", (["VECCALC"], 1)), ("!ascendc.tbuf_pool<a1, 4>", (["A1"], 4))],
)
def test_types(text: str, expected: tuple[list[str], int]) -> None:
    """Positions and the number behind them."""
    assert positions_in(text) == expected


def test_buffers_lie_one_behind_the_other(device: Any) -> None:
    """Each rounded up to 32 bytes; a tensor is as long as its buffer."""
    que = queue(device, number=3, nbytes=100)
    other = queue(device, "!ascendc.queue<vecout, 1>", 1, 64)
    assert [slot.address for slot in que.slots] == [0, 128, 256] and other.slots[0].address == 384
    tensor = alloc(device, que)
    assert (tensor.address, tensor.length, tensor.position) == (0, 32, VECIN)


@pytest.mark.parametrize("position", sorted(PRODUCERS))
def test_flags_of_each_position(make_device: Any, position: str) -> None:
    """EnQue sets producer -> consumer, DeQue waits; FreeTensor sets it back, the buffer's next AllocTensor waits."""
    kind = CoreType.AIV if position in ("VECIN", "VECOUT") else CoreType.AIC
    device = make_device("310P3" if position == "CO2" else "910B1", cores=(CoreInfo(kind, 0),))
    que = queue(device, f"!ascendc.queue<{position.lower()}, 1>", 1)
    tensor = alloc(device, que)
    assert flags(device) == []  # the first allocation waits for nobody
    device.run("que_bind.enque_tensor", que, tensor)
    tensor = deque(device, que)
    device.run("que_bind.free_tensor", que, tensor)
    alloc(device, que)
    there = HardEvent[f"{PRODUCERS[position]}_{CONSUMERS[position]}"]
    back = HardEvent[f"{CONSUMERS[position]}_{PRODUCERS[position]}"]
    assert flags(device) == [
        ("set_flag", there.source.name, there), ("wait_flag", there.target.name, there),
        ("set_flag", back.source.name, back), ("wait_flag", back.target.name, back),
    ]
    assert codes(device) == []


def test_rows_of_a_flag_pair_name_the_same_buffer(device: Any) -> None:
    """b: the buffer's place in its queue, c: the trace buffer, d: the flag; alike in a set and its wait."""
    que = queue(device, number=2)
    for _ in range(3):
        device.run("que_bind.enque_tensor", que, alloc(device, que))
        device.run("que_bind.free_tensor", que, deque(device, que))
    batch = device.trace()
    waiting: dict[tuple[int, ...], int] = {}
    for code, *operands in batch.instruction[[2, 5, 6, 7, 8]].T.tolist():
        if OPCODES.names[code] == "set_flag":
            waiting[tuple(operands)] = waiting.get(tuple(operands), 0) + 1
        elif OPCODES.names[code] == "wait_flag":
            waiting[tuple(operands)] -= 1
    assert sorted(waiting.values()) == [0, 0, 0, 0, 1, 1]  # two frees are still up
    origins = batch.column("origin")[batch.column("opcode") == OPCODES.number("set_flag")]
    assert set(origins.tolist()) == {int(Origin.FRAMEWORK)}
    assert device.core.flags.raised == []  # not the program's


def test_double_buffer_takes_turns(device: Any) -> None:
    """Two buffers alternate; each allocation is a new generation of trace buffers."""
    que = queue(device, number=2)
    addresses, buffers = [], []
    for _ in range(4):
        tensor = alloc(device, que)
        addresses.append(tensor.address)
        buffers.append(tensor.buffer)
        device.run("que_bind.free_tensor", que, tensor)
    assert addresses == [0, 128, 0, 128] and len(set(buffers)) == 4


def test_que_bind_joins_copy_in_and_copy_out(device: Any) -> None:
    """VECIN -> VECOUT: MTE2 fills, MTE3 empties."""
    que = queue(device, "!ascendc.que_bind<vecin, vecout, 1>")
    device.run("que_bind.enque_tensor", que, alloc(device, que))
    deque(device, que)
    assert flags(device) == [("set_flag", "MTE2", HardEvent.MTE2_MTE3), ("wait_flag", "MTE3", HardEvent.MTE2_MTE3)]


@pytest.mark.parametrize(
    ("source", "target", "event"),
    [(GM, VECIN, HardEvent.MTE2_V), (VECOUT, GM, HardEvent.V_MTE3), (VECIN, VECOUT, None)],
)
def test_position_forms_flag_one_leg(device: Any, source: int, target: int, event: HardEvent | None) -> None:
    """EnQue<GM, VECIN> for the copy in, EnQue<VECOUT, GM> for the copy out of the same buffer."""
    assert leg(source, target) == event
    que = queue(device, "!ascendc.que_bind<vecin, vecout, 1>")
    tensor = alloc(device, que)
    device.run("que_bind.enque_tensor_pos", que, tensor, src_user_pos=source, dst_user_pos=target)
    again = device.run(
        "que_bind.deque_tensor_pos", que, src_user_pos=source, dst_user_pos=target, result_dtype=F32
    )
    assert again.address == tensor.address
    assert [row[2] for row in flags(device)] == ([event, event] if event is not None else [])


def test_in_place_forms(device: Any) -> None:
    """The handle that is passed becomes the buffer."""
    que = queue(device, "!ascendc.que_bind<vecin, vecin, 0>", 2)
    handle = device.run("local_tensor", result_dtype=F32)
    assert handle.length == 0
    device.run("que_bind.alloc_tensor_in_place", que, handle)
    assert handle.length == 32 and handle.memory is device.core.memories[Space.UB]
    device.run("que_bind.enque_tensor", que, handle)
    other = device.run("local_tensor", result_dtype=F32)
    device.run("que_bind.deque_tensor_in_place", que, other)
    assert other.address == handle.address and other.buffer == handle.buffer
    device.run("que_bind.free_tensor", que, other)
    assert codes(device) == []


def test_queries(device: Any) -> None:
    """The examples of pages HasIdleBuffer and VacantInQue: four buffers, depth 4."""
    que = queue(device, "!ascendc.queue<vecout, 4>", 5)
    assert device.run("que_bind.has_idle_buffer", que) == 1 and device.run("que_bind.vacant_in_que", que) == 1
    tensors = [alloc(device, que) for _ in range(5)]
    assert device.run("que_bind.has_idle_buffer", que) == 0
    assert device.run("que_bind.has_tensor_in_que", que) == 0
    for number, tensor in enumerate(tensors[:4]):
        assert device.run("que_bind.get_tensor_count_in_que", que) == number
        device.run("que_bind.enque_tensor", que, tensor)
    assert device.run("que_bind.has_tensor_in_que", que) == 1 and device.run("que_bind.vacant_in_que", que) == 0
    device.run("que_bind.enque_tensor", que, tensors[4])
    assert codes(device) == ["enque_full"]
    assert [deque(device, que).address for _ in range(5)] == [tensor.address for tensor in tensors]


def test_misuse(device: Any) -> None:
    """Each has its code, and the queue goes on."""
    que = queue(device, number=1)
    other = queue(device, number=1)
    tensor = alloc(device, que)
    alloc(device, que)
    deque(device, que)
    device.run("que_bind.enque_tensor", other, tensor)
    device.run("que_bind.free_tensor", other, tensor)
    device.run("que_bind.free_tensor", que, alloc(device, que))
    assert codes(device) == [
        "queue_no_idle_buffer", "deque_empty", "enque_foreign", "free_foreign", "queue_no_idle_buffer",
    ]
    stale = alloc(device, que)
    device.run("que_bind.free_tensor", que, stale)
    device.run("que_bind.free_tensor", que, stale)
    device.run("que_bind.enque_tensor", que, stale)
    assert codes(device)[5:] == ["free_twice", "enque_not_held"]


def test_queue_without_memory(device: Any) -> None:
    """Used before init_buffer."""
    que = device.run("queue", result_type="!ascendc.queue<vecin, 1>")
    alloc(device, que)
    assert codes(device) == ["queue_not_initialised"]


def test_free_of_a_queued_buffer_lowers_its_flag(device: Any) -> None:
    """So that the next EnQue of that buffer finds it down."""
    que = queue(device, number=1)
    tensor = alloc(device, que)
    device.run("que_bind.enque_tensor", que, tensor)
    device.run("que_bind.free_tensor", que, tensor)
    assert device.run("que_bind.has_tensor_in_que", que) == 0
    device.run("que_bind.enque_tensor", que, alloc(device, que))
    deque(device, que)
    assert codes(device) == [] and not device.core.stalled


def test_queues_of_the_other_core_type(cube: Any) -> None:
    """A mixed kernel's vector queue on the cube core: states as usual, no flags."""
    que = queue(cube, "!ascendc.queue<vecin, 1>", 1)
    cube.run("que_bind.enque_tensor", que, alloc(cube, que))
    cube.run("que_bind.free_tensor", que, deque(cube, que))
    assert flags(cube) == [] and codes(cube) == []


def test_destroy(device: Any) -> None:
    """Waits for the consumers of freed buffers; tensors in use count as freed; the memory is gone."""
    que = queue(device, number=2)
    device.run("que_bind.free_tensor", que, alloc(device, que))
    held = alloc(device, que)
    device.trace()
    device.run("que_bind.destroy", que)
    batch = device.trace()
    assert [OPCODES.names[code] for code in batch.column("opcode")] == ["wait_flag", "que_free"]
    assert batch.column("a")[1] == held.buffer
    assert que.slots == []


def test_buffers_placed_by_hand(device: Any) -> None:
    """InitStartBufHandle and InitBufHandle of a pool of the program's own."""
    que = device.run("queue", result_type="!ascendc.queue<vecin, 2>")
    device.run("que_bind.init_start_buf_handle", que, None, 2, 256)
    for index in range(2):
        device.run("que_bind.init_buf_handle", que, None, index, None, 1024 + 256 * index, 256)
    assert [alloc(device, que).address for _ in range(2)] == [1024, 1280]
    device.run("que_bind.init_buf_handle", que, None, 2, None, 0, 256)
    assert codes(device) == ["bad_operand"]
    buf = device.run("tbuf", result_type="!ascendc.tbuf<veccalc>")
    device.run("que_bind.init_start_buf_handle", buf, None, 1, 64)
    device.run("que_bind.init_buf_handle", buf, None, 0, None, 4096, 64)
    assert device.run("tbuf.get_tensor", buf, result_dtype=F32).address == 4096


def test_tbuf(device: Any) -> None:
    """The whole buffer, its first elements, and the example of page GetWithOffset: 128 int32 from byte 64 on."""
    buf = device.run("tbuf", result_type="!ascendc.tbuf<veccalc>")
    device.run("pipe.init_buffer", device.run("pipe"), buf, 1024)
    whole = device.run("tbuf.get_tensor", buf, result_dtype=F32)
    assert (whole.length, whole.position) == (256, 11)
    assert device.run("tbuf.get_tensor", buf, 10, result_dtype=F32).length == 10
    part = device.run("tbuf.get_with_offset", buf, 128, 64, result_dtype=np.dtype(np.int32))
    assert (part.address, part.length, part.buffer) == (whole.address + 64, 128, whole.buffer)
    assert codes(device) == []
    device.run("duplicate_l2", part, 7, 16)
    assert device.touched(whole, Role.WRITE) == set(range(whole.address + 64, whole.address + 128))
    device.run("tbuf.get_with_offset", buf, 256, 8, result_dtype=F32)
    assert codes(device) == ["bad_operand", "bad_operand"]


def test_co2_is_global_memory_on_split_chips(device: Any) -> None:
    """There is no on-chip memory to give it."""
    with pytest.raises(Unsupported, match="CO2 lie in global memory on Ascend910B1"):
        device.run("queue", result_type="!ascendc.queue<co2, 1>")


def test_tbuf_without_memory(device: Any) -> None:
    """Used before init_buffer: a fault, and a tensor of no bytes' buffer."""
    buf = device.run("tbuf", result_type="!ascendc.tbuf<veccalc>")
    tensor = device.run("tbuf.get_tensor", buf, result_dtype=F32)
    assert codes(device) == ["queue_not_initialised"]
    assert device.recorder.buffers[tensor.buffer].size == 0


def test_a_tbuf_allocates_its_own_buffer(device: Any) -> None:
    """TBuf is a queue of depth 0 in the vendor's library: alloc_tensor gives its buffer, free_tensor keeps it."""
    pipe = device.run("pipe")
    buf = device.run("tbuf", result_type="!ascendc.tbuf<veccalc>")
    device.run("pipe.init_buffer", pipe, buf, 128)
    first = device.run("que_bind.alloc_tensor", buf, result_dtype=np.dtype(np.uint8))
    device.run("que_bind.free_tensor", buf, first)
    second = device.run("que_bind.alloc_tensor", buf, result_dtype=np.dtype(np.float32))
    assert (first.address, first.length) == (second.address, 128)
    assert second.length == 32
    assert device.recorder.faults == []
