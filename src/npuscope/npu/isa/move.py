"""Data moves between memories (hardware.md 2.1): which pipe carries a move, and plain, strided and padded copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import SPOIL, Core, opcode
from npuscope.npu.isa.atomic import accumulate
from npuscope.npu.layout import BLOCK, Layout, contiguous, strided
from npuscope.npu.memory import UNDEFINED_BYTE
from npuscope.npu.tensor import Tensor, shifted
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
"""(source, destination) -> pipe, from hardware.md 2.1; a chip may carry a move on another one."""

_CODES = {pair: opcode(f"copy_{pair[0].name.lower()}_to_{pair[1].name.lower()}") for pair in PIPES}
_routes: dict[tuple[str, Space, Space], tuple[int, int]] = {}

VECTOR_SPACES = frozenset({Space.UB})
CUBE_SPACES = frozenset({Space.L1, Space.L0A, Space.L0B, Space.L0C, Space.BT, Space.FB})

COUNT_LIMIT = 4095
WORD_LIMIT = 65535
BYTES_LIMIT = 2097151
"""Largest block count, block length or gap in blocks, and block length in bytes (hardware.md 2.2)."""


def runs_here(core: Core, *tensors: Tensor) -> bool:
    """Whether this core type has the memories a move names; on a split chip the other half skips it (sanitizer.md 3.5).

    Raises Unsupported for a move between UB and a cube memory, which no core of a split chip has both of.
    """
    if not core.chip.split:
        return True
    spaces = {tensor.memory.space for tensor in tensors}
    if spaces & CUBE_SPACES:
        if spaces & VECTOR_SPACES:
            if core.is_aiv:
                names = " and ".join(sorted(space.name for space in spaces))
                raise Unsupported(
                    f"a copy between {names}: on {core.chip.name} they belong to different cores, and what crosses "
                    "between cores is not simulated; copy through global memory"
                )
            return False
        return not core.is_aiv
    return core.is_aiv or not spaces & VECTOR_SPACES


def route(core: Core, source: Space, destination: Space) -> tuple[int, int]:
    """(pipe, opcode) of a move; raises UserError where the chip has no such path."""
    key = (core.chip.name, source, destination)
    found = _routes.get(key)
    if found is None:
        path = core.chip.path(f"{source.name.lower()}_to_{destination.name.lower()}")
        if path is None:
            raise UserError(f"{core.chip.name} has no path from {source.name} to {destination.name}")
        found = _routes[key] = (int(path.pipe), _CODES[source, destination])
    return found


def begin_move(core: Core, site: int, source: Tensor, destination: Tensor, nbytes: int, a: int = 0, b: int = 0) -> None:
    """Write the trace row of a move; the pipe follows from the two spaces."""
    pipe, code = route(core, source.memory.space, destination.memory.space)
    core.begin(site, pipe, code, a, b, work=nbytes)


def bounded(core: Core, what: str, value: int, high: int, low: int = 0) -> int:
    """`value` kept within what the instruction last begun takes; a value outside is a fault."""
    if low <= value <= high:
        return value
    core.fault("bad_operand", what=what, value=value, limit=f"{low} to {high}")
    return min(max(value, low), high)


def copy_run(core: Core, site: int, destination: Tensor, source: Tensor, nbytes: int) -> None:
    """Copy `nbytes` contiguous bytes; 0 is no operation on data but still an instruction."""
    begin_move(core, site, source, destination, nbytes)
    read = contiguous(nbytes // source.dtype.itemsize, source.dtype.itemsize)
    same = destination.dtype.itemsize == source.dtype.itemsize
    write = read if same else contiguous(nbytes // destination.dtype.itemsize, destination.dtype.itemsize)
    move(core, destination, write, source, read)


@dataclass(frozen=True, slots=True)
class Blocks:
    """`count` runs of `length` units; gaps between the end of a run and the start of the next, in units of their own.

    Units are in bytes. With `heads` the gaps are from start to start instead.
    """

    count: int
    length: int
    source_gap: int
    gap: int
    unit: int = BLOCK
    source_unit: int = BLOCK
    gap_unit: int = BLOCK
    heads: bool = False


def copy_blocks(
    core: Core, site: int, destination: Tensor, source: Tensor, count: int, length: int, source_gap: int, gap: int
) -> None:
    """Copy `count` runs of `length` 32-byte blocks with gaps between runs, also in blocks (DataCopyParams)."""
    copy_runs(core, site, destination, source, Blocks(count, length, source_gap, gap))


def copy_runs(core: Core, site: int, destination: Tensor, source: Tensor, blocks: Blocks) -> None:
    """Copy runs of blocks; a run of another element type is converted on the way (L1 to BT: half or bfloat16 to float).

    A count or length of 0 is no operation (hardware.md 2.2).
    """
    run = blocks.length * blocks.unit
    begin_move(core, site, source, destination, blocks.count * run, blocks.count, blocks.length)
    for what, value in (
        ("block length", blocks.length),
        ("source gap", blocks.source_gap),
        ("destination gap", blocks.gap),
    ):
        bounded(core, what, value, WORD_LIMIT)
    count = bounded(core, "block count", blocks.count, COUNT_LIMIT)
    if count == 0 or run <= 0:
        return
    size, out_size = source.dtype.itemsize, destination.dtype.itemsize
    elements = run // size
    out_run = elements * out_size if destination.memory.space == Space.BT else run
    source_step = blocks.source_gap * blocks.source_unit + (0 if blocks.heads else run)
    step = blocks.gap * blocks.gap_unit + (0 if blocks.heads else out_run)
    read = strided((count, elements), (source_step, size), size)
    write = strided((count, out_run // out_size), (step, out_size), out_size)
    move(core, destination, write, source, read)


def move(core: Core, destination: Tensor, write: Layout, source: Tensor, read: Layout) -> None:
    """The effect of a move: the same bytes, or into BT the same values, whatever the element types. Writes to GM obey
    the atomic mode."""
    values = core.load(source, read)
    kind = destination.dtype
    if kind != source.dtype:
        if kind.itemsize == source.dtype.itemsize:
            values = values.view(kind)
        elif destination.memory.space == Space.BT:
            values = values.astype(kind)
        else:
            values = np.ascontiguousarray(values).view(kind).reshape(write.shape)
    deliver(core, destination, write, values)


def deliver(core: Core, destination: Tensor, write: Layout, values: Any) -> None:
    """Write what a move carries; writes to GM obey the atomic mode."""
    if core.registers.atomic_operation is not None and destination.memory.space == Space.GM:
        accumulate(core, destination, write, values)
    else:
        core.store(destination, write, values)


# -- byte-granular copies (DataCopyPad) ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Padding:
    """What DataCopyPad puts around each run: elements on the left and right, and the fill value's bits (None: nothing
    was asked for, so the device leaves anything there)."""

    left: int = 0
    right: int = 0
    bits: int | None = None


def _run_elements(core: Core, nbytes: int, itemsize: int) -> int:
    nbytes = bounded(core, "block length in bytes", nbytes, BYTES_LIMIT)
    if nbytes % itemsize:
        core.fault("bad_operand", what="block length in bytes", value=nbytes, limit=f"a multiple of {itemsize}")
    return nbytes // itemsize


def copy_pad_in(
    core: Core, site: int, destination: Tensor, source: Tensor, count: int, nbytes: int, source_gap: int, gap: int,
    padding: Padding,
) -> None:
    """GM to on-chip memory in runs of `nbytes` bytes: gaps in bytes in GM and in 32-byte blocks on chip.

    Each run starts on a 32-byte boundary and is filled up to one: its padding and what is left of the last block. What
    the device leaves undefined gets the pattern of unwritten memory. Without padding elements NPU arch 2201 fills up
    with the run's first element (vendor's DataCopyPad page, GM to UB).
    """
    size = source.dtype.itemsize
    begin_move(core, site, source, destination, count * nbytes, count, nbytes)
    count = bounded(core, "block count", count, COUNT_LIMIT)
    elements = _run_elements(core, nbytes, size)
    left = bounded(core, "left padding in bytes", padding.left * size, BLOCK) // size
    right = bounded(core, "right padding in bytes", padding.right * size, BLOCK) // size
    if size == 8 and padding.bits and (left or right):
        core.fault("bad_operand", what="padding value of 64-bit elements", value=padding.bits, limit="0")
    if count == 0 or elements == 0:
        return
    values = core.load(source, strided((count, elements), (nbytes + source_gap, size), size))
    row = -(-(left + elements + right) * size // BLOCK) * BLOCK
    out = np.empty((count, row // size), destination.dtype)
    if left == right == 0 and (core.chip.arch != "3510" or padding.bits is None):
        out[:] = values[:, :1].view(out.dtype)
    else:
        raw = bytes([UNDEFINED_BYTE]) * 8 if padding.bits is None else (padding.bits % (1 << 64)).to_bytes(8, "little")
        out[:] = np.frombuffer(raw[:size], out.dtype)
    out[:, left : left + elements] = values.view(out.dtype)
    pitch = row + gap * BLOCK
    core.store(destination, strided(out.shape, (pitch, size), size), out)
    if padding.bits is None and (left or right or core.chip.arch == "3510"):
        for first, last in ((0, left), (left + elements, row // size)):
            if first < last:
                spoilt = strided((count, last - first), (pitch, size), size)
                core.note(SPOIL, shifted(destination, first * size), spoilt)


def copy_pad_out(
    core: Core, site: int, destination: Tensor, source: Tensor, count: int, nbytes: int, source_gap: int, gap: int
) -> None:
    """On-chip memory to GM in runs of `nbytes` bytes that start on 32-byte boundaries on chip: gaps in 32-byte blocks
    on chip and in bytes in GM (vendor's DataCopyPad page, UB to GM)."""
    size = source.dtype.itemsize
    begin_move(core, site, source, destination, count * nbytes, count, nbytes)
    count = bounded(core, "block count", count, COUNT_LIMIT)
    elements = _run_elements(core, nbytes, size)
    if count == 0 or elements == 0:
        return
    pitch = (-(-nbytes // BLOCK) + source_gap) * BLOCK
    read = strided((count, elements), (pitch, size), size)
    move(core, destination, strided((count, elements), (nbytes + gap, size), size), source, read)
