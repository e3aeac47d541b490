"""GlobalTensor and LocalTensor: making handles, binding them, reading and writing single elements."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core
from npuscope.npu.memory import Memory
from npuscope.npu.tensor import Pointer, Tensor
from npuscope.trace.schema import Space

POSITIONS = {
    0: Space.GM, 1: Space.L1, 2: Space.L0A, 3: Space.L1, 4: Space.L0B, 5: Space.L1, 6: Space.BT, 7: Space.L0C,
    8: Space.GM, 9: Space.UB, 10: Space.UB, 11: Space.UB,
}
"""TPosition -> memory space on split chips (frontends.md 2)."""

POSITION_NAMES = ("GM", "A1", "A2", "B1", "B2", "C1", "C2", "CO1", "CO2", "VECIN", "VECOUT", "VECCALC")

UNBOUND = Memory(Space.GM, 0, __import__("numpy").empty(0, "u1"))


@operation("ascendc.global_tensor")
def global_tensor(core: Core, site: int, *, result_dtype: Any) -> Tensor:
    """An unbound handle on global memory."""
    return Tensor(UNBOUND, 0, result_dtype, 0)


@operation("ascendc.global_tensor.set_global_buffer")
def set_global_buffer(core: Core, site: int, tensor: Tensor, pointer: Pointer, size: int | None = None) -> None:
    """Bind a handle to an address; `size` is the length in elements that the kernel declares."""
    tensor.memory = pointer.memory
    tensor.address = pointer.address
    tensor.buffer = pointer.buffer
    tensor.length = -1 if size is None else size


@operation("ascendc.local_tensor_v2")
def local_tensor_v2(core: Core, site: int, address: int, length: int, *, pos: int, result_dtype: Any) -> Tensor:
    """A local tensor laid by hand: `length` elements at byte `address` of the memory behind TPosition `pos`."""
    space = POSITIONS[pos]
    nbytes = length * result_dtype.itemsize
    buffer = core.raw_tensor(space, address, nbytes, site, "", result_dtype.name)
    return Tensor(core.memories[space], address, result_dtype, buffer, length, pos)
