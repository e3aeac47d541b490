"""LocalMemAllocator: bump allocation, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.trace.schema import Space

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)


def alloc(device: Any, allocator: Any, count: int, dtype: Any = F32, pos: int = 9, form: str = "alloc") -> Any:
    """Alloc<position, type>(count)."""
    return device.run(f"local_mem_allocator.{form}", allocator, count, pos=pos, result_dtype=dtype)


@pytest.mark.parametrize("form", ["alloc", "alloc_dynamic"])
def test_tensors_lie_back_to_back(device: Any, form: str) -> None:
    """Nothing is rounded up: 3 halves take 6 bytes."""
    allocator = device.run("local_mem_allocator", int(Space.UB))
    assert device.run("local_mem_allocator.get_cur_addr", allocator) == 0
    first = alloc(device, allocator, 32, form=form)
    second = alloc(device, allocator, 3, F16, 11, form)
    third = alloc(device, allocator, 8, form=form)
    assert [tensor.address for tensor in (first, second, third)] == [0, 128, 134]
    assert (second.length, second.dtype, second.position) == (3, F16, 11)
    assert device.run("local_mem_allocator.get_cur_addr", allocator) == 166
    assert device.recorder.faults == []


def test_each_allocator_has_its_memory(cube: Any) -> None:
    """L1 and L0A count for themselves."""
    l1, l0a = (cube.run("local_mem_allocator", int(space)) for space in (Space.L1, Space.L0A))
    a, b = alloc(cube, l1, 1024, pos=1), alloc(cube, l0a, 16, pos=2)
    assert a.memory.space == Space.L1 and b.memory.space == Space.L0A and b.address == 0


def test_over_capacity(device: Any) -> None:
    """196608 bytes of UB; what was handed out is listed."""
    allocator = device.run("local_mem_allocator", int(Space.UB))
    alloc(device, allocator, 49_000)
    assert device.recorder.faults == []
    alloc(device, allocator, 1000)
    (fault,) = device.recorder.faults
    assert fault.code == "over_capacity" and fault.facts["required"] == 200_000
    assert [part[1:] for part in fault.facts["buffers"]] == [(1, 196_000), (1, 4000)]


def test_position_of_another_memory(device: Any) -> None:
    """The UB allocator has nothing at A1."""
    alloc(device, device.run("local_mem_allocator", int(Space.UB)), 8, pos=1)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]
