"""GetValue and SetValue: single elements, by the scalar unit (hardware.md 3.5).

Global memory goes through the core's data cache (npu.cache), UB directly. Other memories the scalar unit cannot reach.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from npuscope.ascendc.queue import elsewhere
from npuscope.ascendc.registry import operation
from npuscope.npu.cache import decoder, encoder
from npuscope.npu.core import READ, WRITE, Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

LOAD, STORE = opcode("scalar_load"), opcode("scalar_store")
S = int(Pipe.S)

Polling = Generator[int, None, Any]


def _row(core: Core, site: int, code: int, role: int, tensor: Tensor, address: int, polls: bool = False) -> None:
    """The trace row of one element's access; a is 1 where a loop asks for it again and again."""
    size = tensor.dtype.itemsize
    core.begin(site, S, code, int(polls), work=size)
    core.recorder.accesses.extend((core.row, role, tensor.buffer, address, contiguous(1, size).number))


def _poll_global(core: Core, site: int, tensor: Tensor, offset: int, fixed: bool = False) -> Polling:
    """GetValue inside a while loop: the other cores go on before the loop acts on what was read."""
    address = tensor.address + offset * tensor.dtype.itemsize
    _row(core, site, LOAD, READ, tensor, address, fixed)
    value = core.cache.read(tensor.memory, address, tensor.dtype)
    yield address
    return value


@operation("ascendc.global_tensor.get_value", polling=_poll_global)
def global_value(core: Core, site: int, tensor: Tensor, offset: int) -> Any:
    """Element `offset` as the data cache has it: a value that was cached stays until it is evicted or DCCI drops it."""
    address = tensor.address + offset * tensor.dtype.itemsize
    _row(core, site, LOAD, READ, tensor, address)
    return core.cache.read(tensor.memory, address, tensor.dtype)


@operation("ascendc.global_tensor.set_value")
def set_global_value(core: Core, site: int, tensor: Tensor, offset: int, value: Any) -> None:
    """Write element `offset` into the data cache; memory has it after DCCI, eviction or the kernel's end."""
    address = tensor.address + offset * tensor.dtype.itemsize
    _row(core, site, STORE, WRITE, tensor, address)
    core.cache.write(tensor.memory, address, tensor.dtype, value)


def _poll_local(core: Core, site: int, tensor: Tensor, index: int, fixed: bool = False) -> Polling:
    """GetValue of UB inside a while loop: what is polled may be a copy of global memory that the loop fetches anew."""
    value = local_value(core, site, tensor, index)
    yield tensor.address + index * tensor.dtype.itemsize
    return value


@operation("ascendc.local_tensor.get_value", polling=_poll_local)
def local_value(core: Core, site: int, tensor: Tensor, index: int) -> Any:
    """Element `index` of a tensor in UB; 0 on a core that has no UB (mixed kernels)."""
    memory, dtype = tensor.memory, tensor.dtype
    if elsewhere(core, memory.space):
        return decoder(dtype)(bytes(dtype.itemsize), 0)
    address = tensor.address + index * dtype.itemsize
    _row(core, site, LOAD, READ, tensor, address)
    _reachable(core, memory.space)
    if address < 0 or address + dtype.itemsize > memory.size:
        return decoder(dtype)(bytes(dtype.itemsize), 0)
    return decoder(dtype)(memory.bytes, address)


@operation("ascendc.local_tensor.set_value")
def set_local_value(core: Core, site: int, tensor: Tensor, index: int, value: Any) -> None:
    """Write element `index` of a tensor in UB; nothing on a core that has no UB (mixed kernels)."""
    memory, dtype = tensor.memory, tensor.dtype
    if elsewhere(core, memory.space):
        return
    address = tensor.address + index * dtype.itemsize
    _row(core, site, STORE, WRITE, tensor, address)
    _reachable(core, memory.space)
    if address >= 0 and address + dtype.itemsize <= memory.size:
        memory.bytes.data[address : address + dtype.itemsize] = encoder(dtype)(value)


def _reachable(core: Core, space: Space) -> None:
    if space != Space.UB:
        core.fault("bad_operand", what="memory of a scalar access", value=space.name, limit="UB or GM")
