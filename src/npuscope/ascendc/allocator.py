"""LocalMemAllocator: hands out one local memory front to back (pages LocalMemAllocator/*)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from npuscope.ascendc.queue import elsewhere
from npuscope.ascendc.registry import operation
from npuscope.ascendc.tensor import POSITIONS, local_tensor_v2
from npuscope.npu.core import Core
from npuscope.npu.tensor import Tensor
from npuscope.trace.names import assigned_name
from npuscope.trace.schema import Space


@dataclass(slots=True)
class Allocator:
    """Where the free part of a memory begins. What was handed out is kept for the report of an overflow."""

    space: Space
    head: int = 0
    made: list[tuple[str, int, int]] = field(default_factory=list)  # name, count, bytes each


@operation("ascendc.local_mem_allocator")
def local_mem_allocator(core: Core, site: int, hardware: int) -> Allocator:
    """LocalMemAllocator<hardware>; Hardware and Space are numbered alike (UB 1, L1 2, L0A 3, ... FIXBUF 7)."""
    return Allocator(Space(hardware))


@operation("ascendc.local_mem_allocator.get_cur_addr")
def get_cur_addr(core: Core, site: int, allocator: Allocator) -> int:
    """The first free byte."""
    return allocator.head


@operation("ascendc.local_mem_allocator.alloc", "ascendc.local_mem_allocator.alloc_dynamic")
def alloc(core: Core, site: int, allocator: Allocator, tile_size: int, *, pos: int, result_dtype: Any) -> Tensor:
    """Alloc<position, type>(elements): the next `tile_size` elements, right behind the last ones: nothing is aligned.

    Faults: ``over_capacity`` past what a kernel may use; ``bad_operand`` for a position in another memory.
    """
    core.site = site
    if POSITIONS[pos] != allocator.space:
        limit = f"positions in {allocator.space.name}"
        core.fault("bad_operand", what="memory of an allocated tensor", value=POSITIONS[pos].name, limit=limit)
    tensor = local_tensor_v2(core, site, allocator.head, tile_size, pos=pos, result_dtype=result_dtype)
    nbytes = tile_size * result_dtype.itemsize
    allocator.head += nbytes
    allocator.made.append((assigned_name(core.recorder.sites[site]), 1, nbytes))
    available = core.chip.memory(allocator.space).limit(mix=core.machine.mixed)
    if allocator.head > available and not elsewhere(core, allocator.space):
        core.fault(
            "over_capacity", space=allocator.space.name, required=allocator.head, available=available,
            buffers=list(allocator.made),
        )
    return tensor
