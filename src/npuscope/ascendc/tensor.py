"""GlobalTensor and LocalTensor: making handles, binding them, what they say about themselves (pages LocalTensor/* and
GlobalTensor/*). Single elements are in scalar_access.py."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.memory import Memory
from npuscope.npu.tensor import Pointer, Tensor
from npuscope.trace.schema import Pipe, Space

POSITIONS = {
    0: Space.GM, 1: Space.L1, 2: Space.L0A, 3: Space.L1, 4: Space.L0B, 5: Space.L1, 6: Space.BT, 7: Space.L0C,
    8: Space.GM, 9: Space.UB, 10: Space.UB, 11: Space.UB,
}
"""TPosition -> memory space on split chips (frontends.md 2)."""

POSITION_NAMES = ("GM", "A1", "A2", "B1", "B2", "C1", "C2", "CO1", "CO2", "VECIN", "VECOUT", "VECCALC")

UNBOUND = Memory(Space.GM, 0, np.empty(0, np.uint8))
UNBOUND_LOCAL = Memory(Space.UB, 0, np.empty(0, np.uint8))
"""What handles refer to before they are bound: memory of no bytes, so that any use of them is out of bounds."""

CACHE_HINT = opcode("l2_cache_hint")
S = int(Pipe.S)


# -- making and binding ----------------------------------------------------------------------------------------------


@operation("ascendc.global_tensor")
def global_tensor(core: Core, site: int, *, result_dtype: Any) -> Tensor:
    """An unbound handle on global memory."""
    return Tensor(UNBOUND, 0, result_dtype, core.raw_tensor(Space.GM, 0, 0, site, "", result_dtype.name))


@operation("ascendc.global_tensor.set_global_buffer")
def set_global_buffer(core: Core, site: int, tensor: Tensor, pointer: Pointer, size: int | None = None) -> None:
    """Bind a handle to an address; `size` is the length in elements that the kernel declares."""
    tensor.memory = pointer.memory
    tensor.address = pointer.address
    tensor.buffer = pointer.buffer
    tensor.length = -1 if size is None else size


@operation("ascendc.local_tensor")
def local_tensor(core: Core, site: int, *, result_dtype: Any) -> Tensor:
    """An unbound handle on local memory, for the in-place forms of AllocTensor and DeQue and for SetAddrWithOffset."""
    buffer = core.raw_tensor(Space.UB, 0, 0, site, "", result_dtype.name)
    return Tensor(UNBOUND_LOCAL, 0, result_dtype, buffer, 0)


@operation("ascendc.local_tensor_v2")
def local_tensor_v2(core: Core, site: int, address: int, length: int, *, pos: int, result_dtype: Any) -> Tensor:
    """A local tensor laid by hand: `length` elements at byte `address` of the memory behind TPosition `pos`."""
    space = POSITIONS[pos]
    nbytes = length * result_dtype.itemsize
    buffer = core.raw_tensor(space, address, nbytes, site, "", result_dtype.name)
    return Tensor(core.memories[space], address, result_dtype, buffer, length, pos)


@operation("ascendc.local_tensor.set_addr_with_offset")
def set_addr_with_offset(core: Core, site: int, tensor: Tensor, source: Tensor, offset: int) -> None:
    """The handle keeps its element type and becomes what `source` is, `offset` elements of `source` further on."""
    tensor.rebind(source.at(offset).cast(tensor.dtype))


@operation("ascendc.global_tensor.bracket", "ascendc.local_tensor.bracket")
def bracket(core: Core, site: int, tensor: Tensor, index: int) -> Tensor:
    """tensor(index): the handle of one element."""
    return tensor.at(index)


# -- what a handle says ----------------------------------------------------------------------------------------------


@operation("ascendc.global_tensor.get_size")
def global_size(core: Core, site: int, tensor: Tensor) -> int:
    """Elements that set_global_buffer was told; 0 when it was told none (page GlobalTensor GetSize)."""
    return max(tensor.length, 0)


@operation("ascendc.local_tensor.get_size")
def local_size(core: Core, site: int, tensor: Tensor) -> int:
    """Elements of the tensor."""
    return max(tensor.length, 0)


@operation("ascendc.local_tensor.get_length")
def local_length(core: Core, site: int, tensor: Tensor) -> int:
    """Bytes of the tensor."""
    return max(tensor.length, 0) * tensor.dtype.itemsize


@operation("ascendc.local_tensor.set_size")
def set_size(core: Core, site: int, tensor: Tensor, size: int) -> None:
    """Declare the tensor to have `size` elements."""
    tensor.length = size


@operation("ascendc.local_tensor.set_buffer_len")
def set_buffer_len(core: Core, site: int, tensor: Tensor, nbytes: int) -> None:
    """Declare the tensor to have `nbytes` bytes (the unit in the example of page SetBufferLen; its table says elements,
    but GetLength gives the same number back and counts bytes)."""
    tensor.length = nbytes // tensor.dtype.itemsize


@operation("ascendc.local_tensor.get_phy_addr")
def local_address(core: Core, site: int, tensor: Tensor, offset: int | None = None) -> int:
    """Byte address of element `offset` in its memory."""
    return tensor.address + (offset or 0) * tensor.dtype.itemsize


@operation("ascendc.global_tensor.get_phy_addr")
def global_address(core: Core, site: int, tensor: Tensor, offset: int | None = None) -> Pointer:
    """The address of element `offset`."""
    pointer = Pointer(tensor.memory, tensor.address, tensor.dtype, tensor.buffer)
    return pointer.offset(offset or 0)


@operation("ascendc.local_tensor.get_position")
def get_position(core: Core, site: int, tensor: Tensor) -> int:
    """The TPosition."""
    return tensor.position


@operation("ascendc.local_tensor.set_user_tag")
def set_user_tag(core: Core, site: int, tensor: Tensor, tag: int) -> None:
    """Put a number of the program's own on the handle."""
    tensor.tag = tag


@operation("ascendc.local_tensor.get_user_tag")
def get_user_tag(core: Core, site: int, tensor: Tensor) -> int:
    """The number that set_user_tag put on the handle, 0 before."""
    return tensor.tag


@operation("ascendc.global_tensor.set_l2_cache_hint")
def set_l2_cache_hint(core: Core, site: int, tensor: Tensor, *, mode: int, rw_mode: int) -> None:
    """SetL2CacheHint: how copies of this tensor use the L2 cache; a trace row (a: mode, b: read 1, write 2 or both 3,
    c: buffer) for whoever models the cache."""
    core.begin(site, S, CACHE_HINT, mode, rw_mode, tensor.buffer)


# -- shapes ----------------------------------------------------------------------------------------------------------


@operation("ascendc.global_tensor.set_shape_info", "ascendc.local_tensor.set_shape_info")
def set_shape_info(core: Core, site: int, tensor: Tensor, shape_info: Record) -> None:
    """Put a shape on the handle, by value."""
    tensor.shape = Record("shape_info", tuple(_copied(value) for value in shape_info.values))


@operation("ascendc.global_tensor.set_shape_info_v2", variadic=("dims",))
def set_shape_dims(core: Core, site: int, tensor: Tensor, dims: list[int]) -> None:
    """Put a shape on the handle, given as its extents."""
    tensor.shape = Record("shape_info", (len(dims), list(dims), 0))


@operation("ascendc.global_tensor.get_shape_info", "ascendc.local_tensor.get_shape_info")
def get_shape_info(core: Core, site: int, tensor: Tensor) -> Record:
    """The shape that was put on the handle; one without dimensions when none was."""
    return tensor.shape if tensor.shape is not None else Record("shape_info", ())


def shape_of(shape_info: Record) -> tuple[int, ...]:
    """The extents in a ShapeInfo: (), (dims, extents, format) or (dims, extents, original dims, original extents,
    format) (page ShapeInfo)."""
    return _extents(shape_info.values[0:2])


def original_shape_of(shape_info: Record) -> tuple[int, ...]:
    """The original extents in a ShapeInfo; without them, as the vendor's constructor does, the present ones."""
    values = shape_info.values
    return _extents(values[2:4]) if len(values) == 5 else _extents(values[0:2])


def _extents(pair: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(int(extent) for extent in pair[1][: pair[0]]) if len(pair) == 2 else ()


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value


@operation("ascendc.get_shape_size")
def get_shape_size(core: Core, site: int, shape_info: Record) -> int:
    """The product of the extents, 1 for none."""
    return prod(shape_of(shape_info))


@operation("ascendc.shape_info.shape")
def shape_extent(core: Core, site: int, shape_info: Record, dim: int) -> int:
    """Extent number `dim`, 0 past the last."""
    extents = shape_of(shape_info)
    return extents[dim] if 0 <= dim < len(extents) else 0


@operation("ascendc.shape_info.original_shape")
def original_extent(core: Core, site: int, shape_info: Record, dim: int) -> int:
    """Original extent number `dim`, 0 past the last."""
    extents = original_shape_of(shape_info)
    return extents[dim] if 0 <= dim < len(extents) else 0
