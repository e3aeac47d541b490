"""Memories: typed views, borrowed storage, device addresses of arrays, on-chip memories made when touched."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from npuscope.npu.memory import UNDEFINED_BYTE, GlobalMemory, LazyMemories, Memory, borrow, on_chip
from npuscope.trace.schema import Space


def test_on_chip_memory_is_undefined_at_first() -> None:
    """A value that is no sensible number in any type."""
    memory = on_chip(Space.UB, 64)
    assert memory.base == 0 and memory.size == 64 and (memory.bytes == UNDEFINED_BYTE).all()
    assert memory.typed(np.dtype(np.float32))[0] > 1e38


def test_typed_views_share_storage_and_hold_whole_elements() -> None:
    """10 bytes hold two float32; the view is made once."""
    memory = Memory(Space.UB, 0, np.zeros(10, np.uint8))
    view = memory.typed(np.dtype(np.float32))
    view[1] = 1.0
    assert view.size == 2 and memory.bytes[4:8].tobytes() == np.float32(1).tobytes()
    assert memory.typed(np.dtype(np.float32)) is view


def test_arrays_get_addresses_with_gaps() -> None:
    """512-byte aligned, far enough apart that an overrun of one does not hit the next; storage is shared."""
    memory = GlobalMemory()
    first, second = np.zeros(100, np.uint8), np.zeros(7, np.uint8)
    a, b = memory.map(first), memory.map(second)
    assert a.base % 512 == b.base % 512 == 0
    assert b.base - (a.base + a.size) >= GlobalMemory.GAP
    a.bytes[3] = 5
    assert first[3] == 5
    assert memory.find(a.base) is a and memory.find(a.base + 99) is a and memory.find(b.base + 6) is b
    assert memory.find(a.base + 100) is None and memory.find(b.base - 1) is None


def test_borrowed_storage() -> None:
    """Bytes at a host address, read-only where that is asked for; nothing at all is an empty array."""
    owner = (ctypes.c_uint8 * 4)(1, 2, 3, 4)
    data = borrow(ctypes.addressof(owner), 4, True, owner)
    data[0] = 9
    assert owner[0] == 9
    fixed = borrow(ctypes.addressof(owner), 4, False, owner)
    with pytest.raises(ValueError, match="read-only"):
        fixed[0] = 1
    assert borrow(0, 0, True, None).size == 0


def test_memories_of_a_core_are_made_when_touched() -> None:
    """And given back when the core has finished."""
    made: list[Space] = []

    def make(space: Space, size: int) -> Memory:
        made.append(space)
        return on_chip(space, size)

    memories = LazyMemories({Space.UB: 64, Space.L1: 128}, make)
    assert made == [] and memories.size(Space.L1) == 128 and memories.size(Space.L0A) == 0
    assert memories[Space.UB] is memories[Space.UB] and made == [Space.UB]
    assert [memory.space for memory in memories.touched] == [Space.UB]
    memories.release()
    assert memories.touched == ()
