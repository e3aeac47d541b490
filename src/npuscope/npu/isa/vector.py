"""Vector instructions: element-wise work over repeats of 256 bytes (hardware.md 4.1).

An operand of a repeat is 8 blocks of 32 bytes (fewer where the other operand has wider elements), block b of repeat r
at ``address + 32 * (b * block_stride + r * repeat_stride)``. Lanes that the mask turns off keep their old content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.npu.core import READ, WRITE, Core
from npuscope.npu.layout import BLOCK, REPEAT_BYTES, Layout, bit_mask, contiguous, prefix_mask, repeats
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe

V = int(Pipe.V)
Compute = Callable[..., Any]
Strides = tuple[int, int]
"""(block stride, repeat stride) of an operand, in blocks of 32 bytes."""
DENSE: Strides = (1, 8)


@dataclass(frozen=True, slots=True)
class Extent:
    """How many elements an instruction handles: `count` in counter mode, else `repeat` times the lanes of `mask`.

    `mask` holds 64-bit words, lowest first; None means all lanes.
    """

    repeat: int = 0
    mask: tuple[int, ...] | None = None
    count: int = -1


def current_extent(core: Core, repeat: int) -> Extent:
    """The extent that the mask registers give an instruction of `repeat` repeats."""
    registers = core.registers
    if registers.mask_mode == COUNTER:
        return Extent(count=registers.mask[0])
    return Extent(repeat, None if registers.mask == FULL_MASK else registers.mask)


def count_extent(core: Core, count: int) -> Extent:
    """The count form of the API: counter mode for one instruction, then normal mode with all lanes again."""
    core.registers.mask_mode = NORMAL
    core.registers.mask = FULL_MASK
    return Extent(count=count)


def set_lanes(core: Core, active: int, itemsize: int) -> None:
    """Mask registers for `active` leading lanes in normal mode; in counter mode the element count."""
    registers = core.registers
    if registers.mask_mode == COUNTER:
        registers.mask = (active, 0)
        return
    lanes = min(active, REPEAT_BYTES // itemsize)
    ones = (1 << max(lanes, 0)) - 1
    registers.mask = (ones & FULL_MASK[0], ones >> 64)


def set_words(core: Core, words: list[int]) -> None:
    """Mask registers from the bit-wise form, `words[0]` covering lanes 0-63."""
    low = words[0] & FULL_MASK[0]
    high = (words[1] & FULL_MASK[0]) if len(words) > 1 else 0
    core.registers.mask = (low, high)


def lanes_per_repeat(*itemsizes: int) -> int:
    """Elements that one repeat handles: a full repeat of the widest operand."""
    return REPEAT_BYTES // max(itemsizes)


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of an extent as layouts, one per operand; `advance` is how many repeats lie before it."""

    layouts: tuple[Layout, ...]
    advance: int
    repeat: int


def pieces(extent: Extent, itemsizes: tuple[int, ...], strides: tuple[Strides, ...]) -> list[Piece]:
    """Cut an extent into at most two parts of regular shape: the full repeats and a masked last one."""
    lanes = lanes_per_repeat(*itemsizes)
    if extent.count >= 0:
        if all(_dense(stride, itemsize, lanes) for stride, itemsize in zip(strides, itemsizes, strict=True)):
            return [Piece(tuple(contiguous(extent.count, itemsize) for itemsize in itemsizes), 0, 1)]
        full, tail = divmod(extent.count, lanes)
        parts = [_piece(full, None, itemsizes, strides, lanes, 0)] if full else []
        if tail:
            parts.append(_piece(1, prefix_mask(tail, lanes), itemsizes, strides, lanes, full))
        return parts
    mask = None
    if extent.mask is not None:
        mask = bit_mask(extent.mask, lanes)
        if all(mask):
            mask = None
    return [_piece(extent.repeat, mask, itemsizes, strides, lanes, 0)]


def _dense(stride: Strides, itemsize: int, lanes: int) -> bool:
    """Whether an operand's repeats follow one another without a gap."""
    return stride == (1, lanes * itemsize // BLOCK)


def _piece(
    repeat: int,
    mask: bytes | None,
    itemsizes: tuple[int, ...],
    strides: tuple[Strides, ...],
    lanes: int,
    advance: int,
) -> Piece:
    layouts = tuple(
        repeats(repeat, block, step, itemsize, mask, max(lanes * itemsize // BLOCK, 1))
        for (block, step), itemsize in zip(strides, itemsizes, strict=True)
    )
    return Piece(layouts, advance, repeat)


def elementwise(
    core: Core,
    site: int,
    opcode: int,
    compute: Compute,
    destination: Tensor,
    sources: tuple[Tensor, ...],
    extent: Extent,
    strides: tuple[Strides, ...],
    accumulate: bool = False,
) -> None:
    """One vector instruction ``destination = compute(*sources)``, lane by lane.

    `strides` has the destination's first, then each source's. With `accumulate`, `compute` also receives the
    destination's old content as its last argument. `compute` is called on whole arrays and rounds as the unit does; a
    numpy ufunc of matching types writes straight into the destination.
    """
    operands = (destination, *sources)
    itemsizes = tuple(tensor.dtype.itemsize for tensor in operands)
    parts = pieces(extent, itemsizes, strides)
    work = extent.count if extent.count >= 0 else extent.repeat * lanes_per_repeat(*itemsizes)
    core.begin(site, V, opcode, extent.repeat, work=work)
    for part in parts:
        moved = _advance(operands, strides, part.advance) if part.advance else operands
        read = moved[1:] if not accumulate else (*moved[1:], moved[0])
        layouts = part.layouts[1:] if not accumulate else (*part.layouts[1:], part.layouts[0])
        for tensor, layout in zip(read, layouts, strict=True):
            core.note(READ, tensor, layout)
        core.note(WRITE, moved[0], part.layouts[0])
        if part.repeat > 1 and _in_order(moved, part.layouts, strides):
            _one_by_one(core, compute, moved, part, strides, accumulate)
        else:
            _apply(core, compute, moved[0], part.layouts[0], read, layouts)


def _apply(
    core: Core,
    compute: Compute,
    destination: Tensor,
    target: Layout,
    sources: tuple[Tensor, ...],
    layouts: tuple[Layout, ...],
) -> None:
    values = [core.view(tensor, layout) for tensor, layout in zip(sources, layouts, strict=True)]
    shape = target.shape
    values = [value if value.shape == shape else value.reshape(shape) for value in values]
    if target.mask is None and isinstance(compute, np.ufunc) and destination.dtype == values[0].dtype:
        out = core.out(destination, target)
        if out is not None:
            compute(*values, out=out, casting="unsafe")
            return
    core.put(destination, target, compute(*values))


def _advance(operands: tuple[Tensor, ...], strides: tuple[Strides, ...], repeat: int) -> tuple[Tensor, ...]:
    """The operands `repeat` repeats further on."""
    return tuple(
        shifted(tensor, repeat * step * BLOCK) for tensor, (_, step) in zip(operands, strides, strict=True)
    )


def shifted(tensor: Tensor, nbytes: int) -> Tensor:
    """The tensor `nbytes` bytes further on, same owner."""
    return Tensor(tensor.memory, tensor.address + nbytes, tensor.dtype, tensor.buffer, -1, tensor.position, tensor.slot)


def _in_order(operands: tuple[Tensor, ...], layouts: tuple[Layout, ...], strides: tuple[Strides, ...]) -> bool:
    """Whether a repeat may read what an earlier repeat wrote, so that repeats must run one after the other."""
    target, layout = operands[0], layouts[0]
    if strides[0][1] == 0:
        return True
    low, high = target.address + layout.low, target.address + layout.high
    for tensor, other, stride in zip(operands[1:], layouts[1:], strides[1:], strict=True):
        if tensor.memory is not target.memory:
            continue
        if tensor.address == target.address and stride == strides[0] and other.itemsize == layout.itemsize:
            continue
        if tensor.address + other.low < high and low < tensor.address + other.high:
            return True
    return False


def _one_by_one(
    core: Core,
    compute: Compute,
    operands: tuple[Tensor, ...],
    part: Piece,
    strides: tuple[Strides, ...],
    accumulate: bool,
) -> None:
    single = []
    for layout, (block, step) in zip(part.layouts, strides, strict=True):
        mask = None if layout.mask is None else layout.mask.tobytes()
        single.append(repeats(1, block, step, layout.itemsize, mask, layout.shape[-2]))
    for repeat in range(part.repeat):
        moved = _advance(operands, strides, repeat)
        read = moved[1:] if not accumulate else (*moved[1:], moved[0])
        layouts = tuple(single[1:]) if not accumulate else (*single[1:], single[0])
        _apply(core, compute, moved[0], single[0], read, layouts)
