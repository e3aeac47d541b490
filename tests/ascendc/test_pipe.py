"""TPipe: memory front to back, limits, reset and destroy, event ids, what is left for a stack buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.npu.sync import HardEvent, Stuck
from npuscope.trace.schema import OPCODES, Space

F32 = np.dtype(np.float32)
V_S, M_MTE1 = int(HardEvent.V_S), int(HardEvent.M_MTE1)


def queue(device: Any, owner: Any, position: str, number: int, nbytes: int) -> Any:
    """A queue with memory of the pipe."""
    made = device.run("queue", result_type=f"!ascendc.queue<{position}, 1>")
    device.run("pipe.init_queue", owner, made, number, nbytes)
    return made


def faults(device: Any) -> list[tuple[str, dict[str, Any]]]:
    """What the machine reported."""
    return [(fault.code, dict(fault.facts)) for fault in device.recorder.faults]


def names(device: Any) -> list[str]:
    """Instructions since the last look."""
    return [OPCODES.names[code] for code in device.trace().column("opcode")]


def test_one_offset_per_memory(make_device: Any) -> None:
    """VECIN, VECOUT and VECCALC share UB; A1 has its own."""
    device = make_device("310P3")
    owner = device.run("pipe")
    x, y = queue(device, owner, "vecin", 2, 100), queue(device, owner, "vecout", 1, 32)
    a = queue(device, owner, "a1", 1, 512)
    buf = device.run("tbuf", result_type="!ascendc.tbuf<veccalc>")
    device.run("pipe.init_buffer", owner, buf, 33)
    assert [slot.address for slot in x.slots + y.slots] == [0, 128, 256]
    assert a.slots[0].address == 0 and (buf.address, buf.size) == (288, 64)
    assert device.recorder.buffers[buf.buffer].kind == "tbuf"


def test_over_capacity(device: Any) -> None:
    """196608 bytes of UB on A2; the fault lists what was asked for."""
    owner = device.run("pipe")
    queue(device, owner, "vecin", 2, 80_000)
    assert faults(device) == []
    queue(device, owner, "vecout", 1, 40_000)
    (code, facts), = faults(device)
    assert code == "over_capacity"
    assert (facts["space"], facts["required"], facts["available"]) == ("UB", 200_000, 196_608)
    assert [part[1:] for part in facts["buffers"]] == [(2, 80_000), (1, 40_000)]


def test_mixed_kernels_have_less(make_device: Any) -> None:
    """256 bytes are reserved."""
    from npuscope.npu.machine import mixed_cores

    device = make_device(cores=mixed_cores(1))
    device.core = device.machine.cores[1]
    queue(device, device.run("pipe"), "vecin", 1, 196_608)
    assert faults(device)[0][1]["available"] == 196_352


def test_queue_limit(device: Any) -> None:
    """Eight queue buffers per position; another position counts for itself."""
    owner = device.run("pipe")
    for _ in range(4):
        queue(device, owner, "vecin", 2, 32)
    queue(device, owner, "vecout", 8, 32)
    assert faults(device) == []
    queue(device, owner, "vecin", 1, 32)
    (code, facts), = faults(device)
    assert code == "queue_limit"
    assert (facts["position"], facts["required"], facts["available"]) == ("VECIN", 9, 8)


def test_reset_starts_anew(device: Any) -> None:
    """The example of page Reset: 192 KB twice. Freed buffers are waited for, tensors in use count as freed."""
    owner = device.run("pipe")
    que = queue(device, owner, "vecin", 1, 192 * 1024)
    device.run("que_bind.free_tensor", que, device.run("que_bind.alloc_tensor", que, result_dtype=F32))
    device.trace()
    device.run("pipe.reset", owner)
    assert names(device) == ["wait_flag", "pipe_reset"] and que.slots == []
    que = queue(device, owner, "vecout", 1, 192 * 1024)
    held = device.run("que_bind.alloc_tensor", que, result_dtype=F32)
    device.trace()
    device.run("pipe.reset", owner)
    batch = device.trace()
    assert [OPCODES.names[code] for code in batch.column("opcode")] == ["que_free", "pipe_reset"]
    assert batch.column("a")[0] == held.buffer
    assert faults(device) == []


def test_destroy_drains_all_pipes(device: Any) -> None:
    """A barrier over all pipes ends it; with a stalled pipe it never ends."""
    owner = device.run("pipe")
    device.run("pipe.destroy", owner)
    assert names(device) == ["pipe_destroy", "pipe_barrier"]
    device.run("pipe.init", owner)
    assert queue(device, owner, "vecin", 1, 64).slots[0].address == 0
    device.run("wait_flag", 0, event=int(HardEvent.MTE2_V))
    with pytest.raises(Stuck, match="TPipe.Destroy"):
        device.run("pipe.destroy", owner)


def test_event_ids(device: Any) -> None:
    """AllocEventID takes the lowest free id of an event, FetchEventID only names it, ReleaseEventID frees it."""
    owner = device.run("pipe")
    assert device.run("pipe.fetch_event_id", owner, event=V_S) == 0
    assert [device.run("pipe.alloc_event_id", owner, event=V_S) for _ in range(3)] == [0, 1, 2]
    assert device.run("pipe.fetch_event_id", owner, event=V_S) == 3
    assert device.run("pipe.alloc_event_id", owner, event=int(HardEvent.S_V)) == 0  # each event has its own
    device.run("pipe.release_event_id", owner, 1, event=V_S)
    assert device.run("pipe.alloc_event_id", owner, event=V_S) == 1
    assert faults(device) == []


def test_event_ids_run_out(device: Any) -> None:
    """Eight per event; releasing one that nobody took is a fault."""
    owner = device.run("pipe")
    for _ in range(8):
        device.run("pipe.alloc_event_id", owner, event=V_S)
    assert device.run("pipe.alloc_event_id", owner, event=V_S) == 7
    assert faults(device) == [("event_ids_exhausted", {"event": "V_S", "limit": 8})]
    device.run("pipe.release_event_id", owner, 3, event=V_S)
    device.run("pipe.release_event_id", owner, 3, event=V_S)
    assert faults(device)[1:] == [("event_id_not_allocated", {"event": "V_S", "id": 3})]
    device.run("pipe.reset", owner)
    assert device.run("pipe.fetch_event_id", owner, event=V_S) == 0


def test_event_ids_of_the_matmul_macro(cube: Any) -> None:
    """On a cube core the pipe itself has 0, 1 and 2 of M_MTE1."""
    assert cube.run("pipe.alloc_event_id", cube.run("pipe"), event=M_MTE1) == 3


def test_base_address(device: Any) -> None:
    """Local addresses count from 0."""
    assert device.run("pipe.get_base_addr", device.run("pipe"), logic_pos=9) == 0


def test_pop_stack_buffer(device: Any) -> None:
    """All that is left of UB behind the pipe's buffers; all of it without a pipe."""
    tensor = device.run("local_tensor", result_dtype=F32)
    device.run("pop_stack_buffer", tensor, pos=11)
    assert (tensor.address, tensor.length) == (0, 196_608 // 4)
    queue(device, device.run("pipe"), "vecin", 2, 1000)
    device.run("pop_stack_buffer", tensor, pos=11)
    assert (tensor.address, tensor.length, tensor.position) == (2048, (196_608 - 2048) // 4, 11)
    assert tensor.memory is device.core.memories[Space.UB]


@pytest.mark.parametrize(("text", "dims", "elements"), [("8x16xf32", [], 128), ("*xf32", [3, 5], 15)])
def test_local_tensor_auto(device: Any, text: str, dims: list[int], elements: int) -> None:
    """Static or dynamic shape; the same bytes each time the line runs."""
    device.run("pipe")
    kind = f"!ascendc.local_tensor<{text}>"
    first = device.run("local_tensor_auto", dims, result_type=kind, result_dtype=F32)
    again = device.run("local_tensor_auto", dims, result_type=kind, result_dtype=F32)
    assert first.length == elements and again.address == first.address and again is not first
