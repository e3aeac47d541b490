"""The two commonest instructions, spelt out for speed: a run of elements moved between global memory and UB, and two
runs in UB combined into a third. Each says False, with nothing done, when anything about it is out of the ordinary;
the general form then does the same work."""

from __future__ import annotations

import numpy as np

from npuscope.npu.core import READ, REWRITE, WRITE, Core, opcode
from npuscope.npu.isa.vector import PAGE, V, alike, spare
from npuscope.npu.layout import BLOCK, contiguous
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

_ROUTES = {
    (Space.GM, Space.UB): (int(Pipe.MTE2), opcode("copy_gm_to_ub")),
    (Space.UB, Space.GM): (int(Pipe.MTE3), opcode("copy_ub_to_gm")),
}


def plain_run(core: Core, site: int, destination: Tensor, source: Tensor, count: int) -> bool:
    """Copy `count` elements of one type, and say True; False, with nothing done, when anything is out of the ordinary
    (other memories, another type, a partial block, an atomic mode, bytes outside the memory)."""
    origin, target = source.memory, destination.memory
    route = _ROUTES.get((origin.space, target.space))
    dtype = source.dtype
    if route is None or not core.is_aiv or dtype != destination.dtype or core.registers.atomic_operation is not None:
        return False
    size = dtype.itemsize
    nbytes = count * size
    start, place = source.address - origin.base, destination.address - target.base
    if nbytes % BLOCK or nbytes <= 0 or start % size or place % size or not target.bytes.flags.writeable:
        return False
    if start < 0 or place < 0 or start + nbytes > origin.size or place + nbytes > target.size:
        return False
    core.begin(site, route[0], route[1], 0, 0, 0, 0, nbytes)
    row, number, role = core.row, contiguous(count, size).number, WRITE
    fresh = origin.typed(dtype)[start // size : start // size + count]
    there = target.typed(dtype)[place // size : place // size + count]
    if target.space == Space.GM:
        core.machine.changes += 1
        if core.compares and there[0].tobytes() == fresh[0].tobytes() and there.tobytes() == fresh.tobytes():
            role = REWRITE
    core.recorder.accesses.extend(
        (row, READ, source.buffer, source.address, number, row, role, destination.buffer, destination.address, number)
    )
    there[...] = fresh
    return True


def plain_binary(
    core: Core, site: int, code: int, compute: object, destination: Tensor, one: Tensor, two: Tensor, count: int
) -> bool:
    """``destination = compute(one, two)`` over `count` elements of one type without gaps, when `compute` is a ufunc and
    the operands lie inside one memory, each apart from the destination or equal to it."""
    memory, dtype = destination.memory, destination.dtype
    if one.memory is not memory or two.memory is not memory or not isinstance(compute, np.ufunc) or count <= 0:
        return False
    if one.dtype is not dtype or two.dtype is not dtype:
        return False
    size = dtype.itemsize
    nbytes = count * size
    place, first, second = destination.address, one.address, two.address
    last = memory.size - nbytes
    if not (0 <= place <= last and 0 <= first <= last and 0 <= second <= last) or (place | first | second) % size:
        return False
    if (first != place and -nbytes < first - place < nbytes) or (second != place and -nbytes < second - place < nbytes):
        return False
    registers = core.registers
    registers.mask_mode = NORMAL
    registers.mask = FULL_MASK
    core.begin(site, V, code, 0, COUNTER, count, 0, count)
    row, number = core.row, contiguous(count, size).number
    core.recorder.accesses.extend((
        row, READ, one.buffer, first, number, row, READ, two.buffer, second, number,
        row, WRITE, destination.buffer, place, number,
    ))
    whole = memory.typed(dtype)
    a, b, c = first // size, second // size, place // size
    out = whole[c : c + count]
    if nbytes >= PAGE and (alike(first, place) or alike(second, place)):
        room = spare(dtype, count)
        compute(whole[a : a + count], whole[b : b + count], room)
        out[...] = room
    else:
        compute(whole[a : a + count], whole[b : b + count], out)
    return True
