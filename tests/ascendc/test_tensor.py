"""Handles: binding, sizes, addresses, tags, shapes, and IR that builds a ShapeInfo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record
from npuscope.ascendc.tensor import original_shape_of, shape_of
from npuscope.mlir.program import lower
from npuscope.npu.tensor import Pointer
from npuscope.trace.schema import OPCODES, Space

F16, F32, I32 = (np.dtype(kind) for kind in (np.float16, np.float32, np.int32))


def shape(*values: Any) -> Record:
    """A ShapeInfo as the language builds it."""
    return Record("shape_info", values)


def test_global_tensor(device: Any) -> None:
    """Unbound at first (0 bytes); bound to an address, with or without a length."""
    handle = device.run("global_tensor", result_dtype=F32)
    assert handle.memory.size == 0 and device.recorder.buffers[handle.buffer].size == 0
    gm = device.gm(np.arange(10, dtype=np.float32))
    pointer = Pointer(gm.memory, gm.address, F32, gm.buffer)
    device.run("global_tensor.set_global_buffer", handle, pointer.offset(2))
    assert device.run("global_tensor.get_size", handle) == 0  # the kernel did not say
    assert device.values(handle, 1)[0] == 2
    device.run("global_tensor.set_global_buffer", handle, pointer, 8)
    assert device.run("global_tensor.get_size", handle) == 8


@pytest.mark.parametrize("offset", [None, 0, 3])
def test_addresses(device: Any, offset: int | None) -> None:
    """Element offsets, byte addresses."""
    local = device.local(np.zeros(16, np.float16), address=64)
    gm = device.gm(np.zeros(16, np.float16))
    assert device.run("local_tensor.get_phy_addr", local, offset) == 64 + 2 * (offset or 0)
    pointer = device.run("global_tensor.get_phy_addr", gm, offset)
    assert isinstance(pointer, Pointer) and pointer.address == gm.address + 2 * (offset or 0)
    assert pointer.buffer == gm.buffer


def test_sizes(device: Any) -> None:
    """GetSize counts elements, GetLength bytes; SetSize and SetBufferLen declare them anew."""
    local = device.local(np.zeros(16, np.int32))
    assert device.run("local_tensor.get_size", local) == 16 and device.run("local_tensor.get_length", local) == 64
    device.run("local_tensor.set_size", local, 5)
    assert device.run("local_tensor.get_size", local) == 5 and device.run("local_tensor.get_length", local) == 20
    device.run("local_tensor.set_buffer_len", local, 32)
    assert device.run("local_tensor.get_length", local) == 32 and device.run("local_tensor.get_size", local) == 8


def test_position_and_tag(device: Any) -> None:
    """What the handle was made with and what the program put on it."""
    local = device.local(np.zeros(16, np.int32), position=10)
    assert device.run("local_tensor.get_position", local) == 10
    assert device.run("local_tensor.get_user_tag", local) == 0
    device.run("local_tensor.set_user_tag", local, 42)
    assert device.run("local_tensor.get_user_tag", local) == 42


def test_address_with_offset(device: Any) -> None:
    """The example of page SetAddrWithOffset: a half view into a float tensor; the offset counts floats."""
    source = device.local(np.arange(64, dtype=np.float32))
    half = device.run("local_tensor", result_dtype=F16)
    device.run("local_tensor.set_addr_with_offset", half, source, 8)
    assert (half.address, half.dtype, half.length) == (source.address + 32, F16, 112)
    assert half.buffer == source.buffer and half.memory is source.memory
    assert (device.values(half).view(np.float32) == np.arange(8, 64)).all()


def test_bracket_is_one_element_on(device: Any) -> None:
    """tensor(index)."""
    local, gm = device.local(np.arange(8, dtype=np.int32)), device.gm(np.arange(8, dtype=np.int32))
    assert device.values(device.run("local_tensor.bracket", local, 3), 1)[0] == 3
    assert device.values(device.run("global_tensor.bracket", gm, 5), 1)[0] == 5


def test_cache_hint_leaves_a_row(device: Any) -> None:
    """Mode, direction and buffer for a model of the L2 cache."""
    gm = device.gm(np.zeros(8, np.int32))
    device.run("global_tensor.set_l2_cache_hint", gm, mode=1, rw_mode=3)
    batch = device.trace()
    assert OPCODES.names[batch.column("opcode")[0]] == "l2_cache_hint"
    assert [batch.column(name)[0] for name in "abc"] == [1, 3, gm.buffer]


@pytest.mark.parametrize(
    ("values", "extents", "original"),
    [((), (), ()), ((2, [16, 1024], 0), (16, 1024), (16, 1024)),
     ((2, [4, 8], 3, [1, 4, 8], 0), (4, 8), (1, 4, 8)), ((1, [7, 9], 0), (7,), (7,))],
)
def test_shape_info(device: Any, values: tuple[Any, ...], extents: tuple[int, ...], original: tuple[int, ...]) -> None:
    """The three constructors of page ShapeInfo, on local and global tensors."""
    info = shape(*values)
    assert shape_of(info) == extents and original_shape_of(info) == original
    for kind, tensor in (("local", device.local(np.zeros(8, np.int32))), ("global", device.gm(np.zeros(8, np.int32)))):
        device.run(f"{kind}_tensor.set_shape_info", tensor, info)
        found = device.run(f"{kind}_tensor.get_shape_info", tensor)
        assert [device.run("shape_info.shape", found, dim) for dim in range(len(extents))] == list(extents)
        assert [device.run("shape_info.original_shape", found, dim) for dim in range(len(original))] == list(original)
        assert device.run("get_shape_size", found) == int(np.prod(extents))
    assert device.run("shape_info.shape", info, 8) == 0


def test_shape_is_put_on_a_tensor_by_value(device: Any) -> None:
    """Changing the array afterwards changes nothing."""
    extents = [4, 8]
    local = device.local(np.zeros(32, np.int32))
    device.run("local_tensor.set_shape_info", local, shape(2, extents, 0))
    extents[0] = 99
    assert shape_of(device.run("local_tensor.get_shape_info", local)) == (4, 8)
    assert shape_of(device.run("local_tensor.get_shape_info", device.local(np.zeros(8, np.int32)))) == ()


def test_shape_by_extents(device: Any) -> None:
    """SetShapeInfo with the extents as arguments."""
    gm = device.gm(np.zeros(24, np.int32))
    device.run("global_tensor.set_shape_info_v2", gm, [2, 3, 4])
    assert shape_of(device.run("global_tensor.get_shape_info", gm)) == (2, 3, 4)


IR = """
"builtin.module"() ({
  "func.func"() <{function_type = () -> (i32), sym_name = "kernel"}> ({
    %c0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %d0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %d1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %c6 = "arith.constant"() <{value = 6 : i32}> : () -> i32
    %c7 = "arith.constant"() <{value = 7 : i32}> : () -> i32
    %two = "arith.constant"() <{value = 2 : i8}> : () -> i8
    %nd = "arith.constant"() <{value = 0 : i8}> : () -> i8
    %array = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2xi32>
    "memref.store"(%c6, %array, %d0) : (i32, memref<2xi32>, index) -> ()
    "memref.store"(%c7, %array, %d1) : (i32, memref<2xi32>, index) -> ()
    %s = "ascendc.construct"(%two, %array, %nd) <{types = [ui8, memref<*xui32>, !ascendc.data_format]}> : (i8, memref<2xi32>, i8) -> !ascendc.shape_info
    %t = "ascendc.local_tensor"() : () -> !ascendc.local_tensor<*xi32>
    "ascendc.local_tensor.set_shape_info"(%t, %s) : (!ascendc.local_tensor<*xi32>, !ascendc.shape_info) -> ()
    %u = "ascendc.local_tensor.get_shape_info"(%t) : (!ascendc.local_tensor<*xi32>) -> !ascendc.shape_info
    %n = "ascendc.get_shape_size"(%u) : (!ascendc.shape_info) -> i32
    "func.return"(%n) : (i32) -> ()
  }) : () -> ()
}) : () -> ()
"""  # noqa: E501 - one operation a line


def test_shape_info_from_ir(device: Any) -> None:
    """What pyasc emits for ShapeInfo(array): dimension count, array, format."""
    program = lower(IR, lambda file: False, device.recorder.add_site)
    with pytest.raises(StopIteration) as stop:
        next(program.entry(device.core))
    assert stop.value.value == 42


def test_reinterpret_cast_from_ir_keeps_bytes(device: Any) -> None:
    """The same bytes as another type: twice as many halves as floats."""
    local = device.local(np.zeros(16, np.float32))
    assert local.cast(F16).length == 32 and local.cast(I32).address == local.address
    assert device.core.memories[Space.UB] is local.memory
