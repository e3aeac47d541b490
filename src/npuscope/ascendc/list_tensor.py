"""ListTensorDesc and TensorDesc: several arrays passed as one list of shapes and pointers (page ListTensorDesc).

The list, in 64-bit words: the byte offset of the pointers from the start; then for each array one word (dimensions in
the low half, number of arrays or index in the high half) and its extents; then the pointers. A list of pointers alone
has no dimensions, its one word says how many, the next is 0xffffffff, and the pointers begin at byte 24.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import READ, Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.memory import Memory
from npuscope.npu.numbers import dtype_of
from npuscope.npu.tensor import Pointer, Tensor
from npuscope.trace.schema import Buffer, Pipe, Space

LOAD = opcode("scalar_load")
S = int(Pipe.S)
WORD = 8
UNCHECKED = 0xFFFF_FFFF
LOW_HALF = 0xFFFF_FFFF


@dataclass(slots=True)
class ListDesc:
    """A decoded list: where its words lie, dimensions and words per array, how many arrays, offset of the pointers."""

    data: Pointer | None = None
    dims: int = 0
    stride: int = 2
    count: int = 0
    pointers: int = 0


@dataclass(slots=True)
class TensorDesc:
    """What GetDesc fills in. `shape_address` is where the program wants the extents; they are kept here."""

    dtype: np.dtype[Any]
    shape_address: int = 0
    shape: list[int] = field(default_factory=list)
    index: int = 0
    pointer: Pointer | None = None


@operation("ascendc.list_tensor_desc")
def list_tensor_desc(core: Core, site: int) -> ListDesc:
    """An empty ListTensorDesc, for init."""
    return ListDesc()


@operation("ascendc.list_tensor_desc_v2")
def list_tensor_desc_v2(core: Core, site: int, data: Pointer, length: int, shape_size: int) -> ListDesc:
    """ListTensorDesc(data, length, shapeSize)."""
    desc = ListDesc()
    list_tensor_desc_init(core, site, desc, data, length, shape_size)
    return desc


@operation("ascendc.list_tensor_desc_init")
def list_tensor_desc_init(
    core: Core, site: int, desc: ListDesc, data: Pointer, length: int, shape_size: int
) -> None:
    """Init: decode the list's head. `length` (bytes) and `shape_size` (arrays) are checked unless 0xffffffff.

    Fault ``bad_operand`` when the list is not laid out as documented or disagrees with them.
    """
    desc.data = data
    offset, head = (int(word) for word in _words(core, site, desc, 0, 2))
    desc.pointers = offset
    desc.dims = head & LOW_HALF
    desc.stride = 1 + desc.dims if desc.dims else 2
    desc.count = head >> 32
    if not desc.count:
        last = int(_words(core, site, desc, offset // WORD - desc.stride, 1)[0])
        desc.count = (last >> 32) + 1
    expected = WORD + desc.count * desc.stride * WORD if desc.dims else 3 * WORD
    if offset != expected:
        core.fault("bad_operand", what="offset of the pointers in a list of tensors", value=offset, limit=expected)
    if length != UNCHECKED and shape_size != UNCHECKED:
        whole = offset + desc.count * WORD
        if shape_size != desc.count:
            core.fault("bad_operand", what="arrays in a list of tensors", value=shape_size, limit=desc.count)
        if length != whole:
            core.fault("bad_operand", what="bytes of a list of tensors", value=length, limit=whole)


@operation("ascendc.list_tensor_desc_get_size")
def list_tensor_desc_get_size(core: Core, site: int, desc: ListDesc) -> int:
    """How many arrays the list holds."""
    return desc.count


@operation("ascendc.list_tensor_desc_get_desc")
def list_tensor_desc_get_desc(core: Core, site: int, desc: ListDesc, tensor: TensorDesc, index: int) -> None:
    """GetDesc: extents, index and pointer of array `index`."""
    _check_index(core, desc, index)
    start = 1 + index * desc.stride
    tensor.shape = [int(word) for word in _words(core, site, desc, start + 1, desc.dims)]
    tensor.index = index
    tensor.pointer = _pointer(core, site, desc, index, tensor.dtype)


@operation("ascendc.list_tensor_desc_get_data_ptr")
def list_tensor_desc_get_data_ptr(core: Core, site: int, desc: ListDesc, index: int, *, dtype: str) -> Pointer:
    """GetDataPtr: where array `index` lies. Raises UserError for an address that belongs to no array of the launch."""
    _check_index(core, desc, index)
    return _pointer(core, site, desc, index, dtype_of(dtype))


@operation("ascendc.tensor_desc")
def tensor_desc(core: Core, site: int, *, element_type: str) -> TensorDesc:
    """An empty TensorDesc."""
    return TensorDesc(dtype_of(element_type))


@operation("ascendc.tensor_desc_set_shape_addr")
def tensor_desc_set_shape_addr(core: Core, site: int, desc: TensorDesc, address: int) -> None:
    """SetShapeAddr: where get_desc is to put the extents."""
    desc.shape_address = address


@operation("ascendc.tensor_desc_get_dim")
def tensor_desc_get_dim(core: Core, site: int, desc: TensorDesc) -> int:
    """Number of dimensions."""
    return len(desc.shape)


@operation("ascendc.tensor_desc_get_index")
def tensor_desc_get_index(core: Core, site: int, desc: TensorDesc) -> int:
    """The array's number in its list."""
    return desc.index


@operation("ascendc.tensor_desc_get_shape")
def tensor_desc_get_shape(core: Core, site: int, desc: TensorDesc, offset: int) -> int:
    """Extent number `offset`; fault ``bad_operand`` past the last."""
    if 0 <= offset < len(desc.shape):
        return desc.shape[offset]
    core.site = site
    core.fault("bad_operand", what="dimension of a TensorDesc", value=offset, limit=f"below {len(desc.shape)}")
    return 0


@operation("ascendc.tensor_desc_get_data_ptr")
def tensor_desc_get_data_ptr(core: Core, site: int, desc: TensorDesc) -> Pointer:
    """Where the array lies. Raises UserError before get_desc."""
    if desc.pointer is None:
        raise UserError("TensorDesc.get_data_ptr before ListTensorDesc.get_desc filled it in")
    return desc.pointer


@operation("ascendc.tensor_desc_get_data_obj")
def tensor_desc_get_data_obj(core: Core, site: int, desc: TensorDesc) -> Tensor:
    """The array as a GlobalTensor. Raises UserError before get_desc."""
    pointer = tensor_desc_get_data_ptr(core, site, desc)
    return Tensor(pointer.memory, pointer.address, pointer.dtype, pointer.buffer)


def _check_index(core: Core, desc: ListDesc, index: int) -> None:
    if not 0 <= index < desc.count:
        core.fault("bad_operand", what="index in a list of tensors", value=index, limit=f"below {desc.count}")


def _words(core: Core, site: int, desc: ListDesc, first: int, count: int) -> np.ndarray:
    """Words of the list, read by the scalar unit. Raises UserError before init."""
    data = desc.data
    if data is None:
        raise UserError("ListTensorDesc is used before init")
    address = data.address + first * WORD
    core.begin(site, S, LOAD, work=count * WORD)
    core.recorder.accesses.extend((core.row, READ, data.buffer, address, contiguous(count, WORD).number))
    dtype = np.dtype(np.uint64)
    return np.array([core.cache.read(data.memory, address + at * WORD, dtype) for at in range(count)], dtype)


def _pointer(core: Core, site: int, desc: ListDesc, index: int, dtype: np.dtype[Any]) -> Pointer:
    address = int(_words(core, site, desc, desc.pointers // WORD + index, 1)[0])
    for region in core.machine.global_memory.regions:
        start = _host_address(region)
        if region.base <= address < region.base + region.size:
            return Pointer(region, address, dtype, _buffer_of(core, region))
        if start <= address < start + region.size:
            return Pointer(region, region.base + address - start, dtype, _buffer_of(core, region))
    raise UserError(
        f"entry {index} of the list of tensors is 0x{address:x}, which is in no array of this launch: "
        "pass the array to the kernel too"
    )


def _host_address(region: Memory) -> int:
    """Where the array lies for the program that launched: lists are made from such addresses."""
    return int(region.bytes.__array_interface__["data"][0])


def _buffer_of(core: Core, region: Memory) -> int:
    """The buffer that stands for the array; a new one when the array is not an argument."""
    for number, buffer in enumerate(core.recorder.buffers):
        if buffer.space == Space.GM and buffer.core == -1 and buffer.base == region.base:
            return number
    return core.buffer(Buffer(Space.GM, -1, region.base, region.size, "argument", "list entry"))
