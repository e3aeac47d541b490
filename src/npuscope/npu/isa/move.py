"""Data moves between memories (hardware.md 2.1): which pipe carries a move, and plain, strided and padded copies."""

from __future__ import annotations

from npuscope.npu.core import Core, opcode
from npuscope.npu.layout import BLOCK, Layout, contiguous, strided
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

PIPES: dict[tuple[Space, Space], Pipe] = {
    (Space.GM, Space.UB): Pipe.MTE2,
    (Space.GM, Space.L1): Pipe.MTE2,
    (Space.GM, Space.L0A): Pipe.MTE2,
    (Space.GM, Space.L0B): Pipe.MTE2,
    (Space.L1, Space.L0A): Pipe.MTE1,
    (Space.L1, Space.L0B): Pipe.MTE1,
    (Space.L1, Space.BT): Pipe.MTE1,
    (Space.L1, Space.FB): Pipe.FIX,
    (Space.L1, Space.UB): Pipe.MTE1,
    (Space.L1, Space.GM): Pipe.MTE3,
    (Space.UB, Space.GM): Pipe.MTE3,
    (Space.UB, Space.L1): Pipe.MTE3,
    (Space.UB, Space.UB): Pipe.V,
    (Space.L0C, Space.GM): Pipe.FIX,
    (Space.L0C, Space.L1): Pipe.FIX,
    (Space.L0C, Space.UB): Pipe.FIX,
}
"""(source, destination) -> pipe, from hardware.md 2.1."""

_MOVES = {
    pair: (int(pipe), opcode(f"copy_{pair[0].name.lower()}_to_{pair[1].name.lower()}")) for pair, pipe in PIPES.items()
}

VECTOR_SPACES = frozenset({Space.UB})
CUBE_SPACES = frozenset({Space.L1, Space.L0A, Space.L0B, Space.L0C, Space.BT, Space.FB})


def runs_here(core: Core, *tensors: Tensor) -> bool:
    """Whether this core type has the memories a move names; on a split chip the other half skips it (sanitizer.md 3.5)."""
    if not core.chip.split:
        return True
    spaces = {tensor.memory.space for tensor in tensors}
    return not (spaces & (CUBE_SPACES if core.is_aiv else VECTOR_SPACES))


def begin_move(core: Core, site: int, source: Tensor, destination: Tensor, nbytes: int, a: int = 0, b: int = 0) -> None:
    """Write the trace row of a move; the pipe follows from the two spaces."""
    pipe, code = _MOVES[source.memory.space, destination.memory.space]
    core.begin(site, pipe, code, a, b, work=nbytes)


def copy_run(core: Core, site: int, destination: Tensor, source: Tensor, nbytes: int) -> None:
    """Copy `nbytes` contiguous bytes; 0 is no operation on data but still an instruction."""
    begin_move(core, site, source, destination, nbytes)
    layout = contiguous(nbytes // source.dtype.itemsize, source.dtype.itemsize)
    move(core, destination, layout, source, layout)


def copy_blocks(
    core: Core, site: int, destination: Tensor, source: Tensor, count: int, length: int, source_gap: int, gap: int
) -> None:
    """Copy `count` runs of `length` 32-byte blocks with gaps between runs, also in blocks (DataCopyParams)."""
    begin_move(core, site, source, destination, count * length * BLOCK, count, length)
    itemsize = source.dtype.itemsize
    elements = length * BLOCK // itemsize
    if count == 0 or length == 0:
        return
    read = strided((count, elements), ((length + source_gap) * BLOCK, itemsize), itemsize)
    write = strided((count, elements), ((length + gap) * BLOCK, itemsize), itemsize)
    move(core, destination, write, source, read)


def move(core: Core, destination: Tensor, write: Layout, source: Tensor, read: Layout) -> None:
    """The effect of a move between operands of one element type; writes to GM obey the atomic mode."""
    values = core.load(source, read)
    if destination.dtype != source.dtype:
        values = values.view(destination.dtype) if values.flags.c_contiguous else values.copy().view(destination.dtype)
    if core.registers.atomic_operation is not None and destination.memory.space == Space.GM:
        from npuscope.npu.isa.atomic import accumulate

        accumulate(core, destination, write, values)
        return
    core.store(destination, write, values)
