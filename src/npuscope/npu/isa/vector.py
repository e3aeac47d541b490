"""Vector instructions: element-wise work over repeats of 256 bytes (hardware.md 4.1).

An operand of a repeat is 8 blocks of 32 bytes (fewer where the other operand has wider elements), block b of repeat r
at ``address + 32 * (b * block_stride + r * repeat_stride)``. Lanes that the mask turns off keep their old content.

The trace row of an element-wise instruction has the repeats in ``a`` (0 in counter mode) and the mask registers in
``b`` (mode, 0 normal, 1 counter), ``c`` (low word; in counter mode the element count) and ``d`` (high word), the words
as signed 64-bit numbers: -1 is all ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from npuscope.npu.core import READ, WRITE, Core
from npuscope.npu.layout import BLOCK, REPEAT_BYTES, Layout, bit_mask, contiguous, prefix_mask, repeats
from npuscope.npu.registers import COUNTER, FULL_MASK, NORMAL
from npuscope.npu.tensor import DType, Tensor, shifted
from npuscope.trace.schema import Pipe

V = int(Pipe.V)
Compute = Callable[..., Any]
Strides = tuple[int, int]
"""(block stride, repeat stride) of an operand, in blocks of 32 bytes."""
DENSE: Strides = (1, 8)
PAGE = 4096
"""Bytes of a host page."""
WORD = FULL_MASK[0]


class Extent(NamedTuple):
    """How many elements an instruction handles: `count` in counter mode, else `repeat` times the lanes of `mask`.

    `mask` holds 64-bit words, lowest first; None means all lanes.
    """

    repeat: int = 0
    mask: tuple[int, ...] | None = None
    count: int = -1  # type: ignore[assignment]  # hides tuple.count, which nobody needs here


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
    return Extent(count=max(count, 0))


def set_lanes(core: Core, active: int, itemsize: int) -> None:
    """Mask registers for `active` leading lanes in normal mode; in counter mode the element count."""
    registers = core.registers
    if registers.mask_mode == COUNTER:
        registers.mask = (max(active, 0), 0)
        return
    lanes = min(active, REPEAT_BYTES // itemsize)
    ones = (1 << max(lanes, 0)) - 1
    registers.mask = (ones & WORD, (ones >> 64) & WORD)


def set_words(core: Core, words: list[int]) -> None:
    """Mask registers from the bit-wise form, `words[0]` covering lanes 0-63."""
    low = words[0] & WORD
    high = (words[1] & WORD) if len(words) > 1 else 0
    core.registers.mask = (low, high)


def signed_word(word: int) -> int:
    """A 64-bit register word as the signed number that a trace column holds."""
    return word - (1 << 64) if word >> 63 else word


def mask_columns(extent: Extent) -> tuple[int, int, int]:
    """(mode, low word, high word) of the mask registers, as an instruction's trace row has them in b, c and d."""
    if extent.count >= 0:
        return COUNTER, extent.count, 0
    if extent.mask is None:
        return NORMAL, -1, -1
    low, high = (*extent.mask, 0)[:2]
    return NORMAL, signed_word(low), signed_word(high)


def lanes_per_repeat(*itemsizes: int) -> int:
    """Elements that one repeat handles: a full repeat of the widest operand."""
    return REPEAT_BYTES // max(itemsizes)


class Piece(NamedTuple):
    """Part of an extent as layouts, one per operand; `advance` is how many repeats lie before it.

    `merged`: the repeats of every operand follow one another without a gap and the layouts are plain runs.
    """

    layouts: tuple[Layout, ...]
    advance: int
    repeat: int
    merged: bool = False


@lru_cache(maxsize=4096)
def pieces(
    extent: Extent, itemsizes: tuple[int, ...], strides: tuple[Strides, ...], merge: bool = True
) -> tuple[Piece, ...]:
    """Cut an extent into at most two parts of regular shape: the full repeats and a masked last one.

    With `merge`, a count over operands without gaps is one run.
    """
    lanes = lanes_per_repeat(*itemsizes)
    if extent.count >= 0:
        full, tail = divmod(extent.count, lanes)
        if merge and _dense(itemsizes, strides, lanes):
            runs = tuple(contiguous(extent.count, itemsize) for itemsize in itemsizes)
            return (Piece(runs, 0, full + (tail > 0), True),)
        parts = [_piece(full, None, itemsizes, strides, lanes, 0)] if full else []
        if tail:
            parts.append(_piece(1, prefix_mask(tail, lanes), itemsizes, strides, lanes, full))
        return tuple(parts)
    mask = None
    if extent.mask is not None:
        mask = bit_mask(extent.mask, lanes)
        if all(mask):
            mask = None
    return (_piece(extent.repeat, mask, itemsizes, strides, lanes, 0),)


def _dense(itemsizes: tuple[int, ...], strides: tuple[Strides, ...], lanes: int) -> bool:
    """Whether the repeats of all operands follow one another without a gap."""
    return all(
        stride == (1, lanes * itemsize // BLOCK) for stride, itemsize in zip(strides, itemsizes, strict=True)
    )


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


@lru_cache(maxsize=4096)
def _plan(
    extent: Extent, itemsizes: tuple[int, ...], strides: tuple[Strides, ...], merge: bool
) -> tuple[Piece, ...]:
    """`pieces`, where full repeats without gaps are one run in normal mode too."""
    parts = pieces(extent, itemsizes, strides, merge)
    lanes = lanes_per_repeat(*itemsizes)
    if extent.count >= 0 or not merge or parts[0].layouts[0].mask is not None or not _dense(itemsizes, strides, lanes):
        return parts
    runs = tuple(contiguous(extent.repeat * lanes, itemsize) for itemsize in itemsizes)
    return (Piece(runs, 0, extent.repeat, True),)


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
    scalars: tuple[Any, ...] = (),
) -> None:
    """One vector instruction ``destination = compute(*sources, *scalars)``, lane by lane.

    `strides` has the destination's first, then each source's. With `accumulate`, `compute` also receives the
    destination's old content after the sources. `compute` is called on whole arrays and rounds as the unit does; a
    numpy ufunc of matching types writes straight into the destination. A repeat sees what earlier repeats wrote.
    """
    operands = (destination, *sources, destination) if accumulate else (destination, *sources)
    if accumulate:
        strides = (*strides, strides[0])
    itemsizes = tuple([tensor.dtype.itemsize for tensor in operands])
    parts = _plan(extent, itemsizes, strides, True)
    mode, low, high = mask_columns(extent)
    work = low if mode == COUNTER else extent.repeat * lanes_per_repeat(*itemsizes)
    core.begin(site, V, opcode, extent.repeat, mode, low, high, work)
    for part in parts:
        layouts = part.layouts
        if part.merged:
            _run(core, compute, destination, operands[1:], layouts[0].count, scalars)
            continue
        moved = _advance(operands, strides, part.advance) if part.advance else operands
        for tensor, layout in zip(moved[1:], layouts[1:], strict=True):
            core.note(READ, tensor, layout)
        core.note(WRITE, moved[0], layouts[0])
        _carry_out(core, compute, moved, part, strides, scalars)


def elementwise_count(
    core: Core,
    site: int,
    opcode: int,
    compute: Compute,
    destination: Tensor,
    sources: tuple[Tensor, ...],
    count: int,
    accumulate: bool = False,
    scalars: tuple[Any, ...] = (),
) -> None:
    """The count form of `elementwise`: `count` elements without gaps, then the mask registers at their defaults."""
    registers = core.registers
    registers.mask_mode = NORMAL
    registers.mask = FULL_MASK
    read = (*sources, destination) if accumulate else sources
    if count <= 0:
        core.begin(site, V, opcode, 0, COUNTER, 0)
        if count < 0:
            core.fault("bad_operand", what="the element count", value=count, limit="0 or more")
        return
    core.begin(site, V, opcode, 0, COUNTER, count, 0, count)
    _run(core, compute, destination, read, count, scalars)


def _run(
    core: Core, compute: Compute, destination: Tensor, read: tuple[Tensor, ...], count: int, scalars: tuple[Any, ...]
) -> None:
    """Records and effect of `count` elements without gaps. The commonest case by far, so it is spelt out for speed."""
    row = core.row
    record = core.recorder.accesses.extend
    dtype, address, memory = destination.dtype, destination.address, destination.memory
    itemsize = dtype.itemsize
    number = contiguous(count, itemsize).number
    end = address + count * itemsize
    whole = True
    values = []
    for source in read:
        kind, start, space = source.dtype, source.address, source.memory
        size = kind.itemsize
        record((row, READ, source.buffer, start, number if size == itemsize else contiguous(count, size).number))
        first = (start - space.base) // size
        view = space.typed(kind)[first : first + count]
        values.append(view)
        if start != address or size != itemsize:  # a repeat may read what an earlier one wrote
            whole = whole and (start >= end or address >= start + count * size)
        if first * size + space.base != start or first < 0 or view.size != count:
            whole = False
    record((row, WRITE, destination.buffer, address, number))
    first = (address - memory.base) // itemsize
    out = memory.typed(dtype)[first : first + count]
    if not whole or first * itemsize + memory.base != address or first < 0 or out.size != count:
        _run_slowly(core, compute, (destination, *read), count, scalars)
    elif values and values[0].dtype == dtype and isinstance(compute, np.ufunc):
        if end - address >= PAGE and any(alike(source.address, address) for source in read):
            room = spare(dtype, count)
            compute(*values, *scalars, out=room)
            out[...] = room
        else:
            compute(*values, *scalars, out=out)
    else:
        out[...] = compute(*values, *scalars)


def alike(source: int, place: int) -> bool:
    """Whether the host would take a load at `source` for one of what it has just stored at `place`: it compares the low
    12 address bits, and a false match stalls the load."""
    return source != place and (source - place + 64) % PAGE < 512


@lru_cache(maxsize=64)
def spare(dtype: DType, count: int) -> np.ndarray:
    """Room for a result on its way: a store to it never shares the low address bits with an operand in UB."""
    whole = np.empty(count * dtype.itemsize + 2 * PAGE, np.uint8)
    start = -whole.ctypes.data % PAGE + PAGE // 2 + BLOCK
    return whole[start : start + count * dtype.itemsize].view(dtype)


def _run_slowly(
    core: Core, compute: Compute, operands: tuple[Tensor, ...], count: int, scalars: tuple[Any, ...]
) -> None:
    itemsizes = tuple([tensor.dtype.itemsize for tensor in operands])
    lanes = lanes_per_repeat(*itemsizes)
    strides = tuple([(1, lanes * itemsize // BLOCK) for itemsize in itemsizes])
    for part in pieces(Extent(count=count), itemsizes, strides):
        _carry_out(core, compute, operands, part, strides, scalars)


def _carry_out(
    core: Core,
    compute: Compute,
    operands: tuple[Tensor, ...],
    part: Piece,
    strides: tuple[Strides, ...],
    scalars: tuple[Any, ...],
) -> None:
    """The effect of a part on operands that start where the part does, destination first."""
    if part.repeat <= 1 or not _in_order(operands, part, strides):
        _apply(core, compute, operands, part.layouts, scalars)
    elif part.merged:
        itemsizes = tuple([tensor.dtype.itemsize for tensor in operands])
        for smaller in pieces(Extent(count=part.layouts[0].count), itemsizes, strides, False):
            moved = _advance(operands, strides, smaller.advance)
            _carry_out(core, compute, moved, smaller, strides, scalars)
    else:
        _one_by_one(core, compute, operands, part, strides, scalars)


def _apply(
    core: Core,
    compute: Compute,
    operands: tuple[Tensor, ...],
    layouts: tuple[Layout, ...],
    scalars: tuple[Any, ...],
) -> None:
    destination, target = operands[0], layouts[0]
    shape = target.shape
    values = []
    for index in range(1, len(operands)):
        value = core.view(operands[index], layouts[index])
        values.append(value if value.shape == shape else value.reshape(shape))
    if target.mask is None and isinstance(compute, np.ufunc) and destination.dtype == values[0].dtype:
        out = core.out(destination, target)
        if out is not None:
            compute(*values, *scalars, out=out)
            return
    core.put(destination, target, compute(*values, *scalars))


def _advance(operands: tuple[Tensor, ...], strides: tuple[Strides, ...], repeat: int) -> tuple[Tensor, ...]:
    """The operands `repeat` repeats further on."""
    return tuple(
        [shifted(tensor, repeat * step * BLOCK) for tensor, (_, step) in zip(operands, strides, strict=True)]
    )


def _in_order(operands: tuple[Tensor, ...], part: Piece, strides: tuple[Strides, ...]) -> bool:
    """Whether a repeat may touch what an earlier repeat wrote, so that repeats must run one after the other."""
    target, layouts = operands[0], part.layouts
    write = (*strides[0], _blocks(layouts[0], part, strides[0]))
    if not part.merged and chained(0, part.repeat, write, write):
        return True
    low, high = target.address + layouts[0].low, target.address + layouts[0].high
    for tensor, layout, stride in zip(operands[1:], layouts[1:], strides[1:], strict=True):
        if tensor.memory is not target.memory:
            continue
        if tensor.address + layout.low >= high or low >= tensor.address + layout.high:
            continue
        distance = tensor.address - target.address
        if chained(distance, part.repeat, write, (*stride, _blocks(layout, part, stride))):
            return True
    return False


def _blocks(layout: Layout, part: Piece, stride: Strides) -> int:
    """Blocks that an operand has in one repeat."""
    return stride[1] if part.merged else layout.shape[-2]


@lru_cache(maxsize=4096)
def chained(distance: int, repeat: int, write: tuple[int, int, int], read: tuple[int, int, int]) -> bool:
    """Whether some repeat touches, through `read`, a block that an earlier repeat wrote through `write`.

    Both are (block stride, repeat stride, blocks in a repeat); the read operand starts `distance` bytes after the
    written one. True where it cannot be told: blocks that overlap in part.
    """
    offset, rest = divmod(distance, BLOCK)
    if rest:
        return True
    written, touched = _touched(repeat, *write), _touched(repeat, *read) + offset
    turns = np.arange(repeat)
    low = int(min(written.min(), touched.min()))
    size = int(max(written.max(), touched.max())) - low + 1
    first = np.full(size, repeat)
    last = np.full(size, -1)
    np.minimum.at(first, written - low, np.repeat(turns, write[2]).reshape(written.shape))
    np.maximum.at(last, touched - low, np.repeat(turns, read[2]).reshape(touched.shape))
    return bool((first < last).any())


def _touched(repeat: int, block_stride: int, repeat_stride: int, blocks: int) -> np.ndarray:
    """Block numbers that an operand touches, (repeat, blocks)."""
    return np.arange(repeat)[:, None] * repeat_stride + np.arange(blocks) * block_stride


def _one_by_one(
    core: Core,
    compute: Compute,
    operands: tuple[Tensor, ...],
    part: Piece,
    strides: tuple[Strides, ...],
    scalars: tuple[Any, ...],
) -> None:
    single = []
    for layout, (block, step) in zip(part.layouts, strides, strict=True):
        mask = None if layout.mask is None else layout.mask.tobytes()
        single.append(repeats(1, block, step, layout.itemsize, mask, layout.shape[-2]))
    layouts = tuple(single)
    for repeat in range(part.repeat):
        _apply(core, compute, _advance(operands, strides, repeat), layouts, scalars)


def as_element(value: Any, dtype: DType) -> Any:
    """A scalar operand as an element of `dtype`, as the API casts it: rounded once, integers cut to their low bits."""
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        whole = int(value) & ((1 << bits) - 1)
        return dtype.type(whole - (1 << bits) if dtype.kind == "i" and whole >> (bits - 1) else whole)
    return dtype.type(value)
