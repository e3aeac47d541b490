"""Gathering and scattering inside UB: by element (vgather, vscatter), by data block (vgatherb), by bit (vreducev2)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.lanes import Run, begin, lane_layout, limited_repeat, runs
from npuscope.npu.isa.vector import Extent, V, mask_columns
from npuscope.npu.layout import (
    BLOCK,
    BLOCKS_PER_REPEAT,
    REPEAT_BYTES,
    contiguous,
    prefix_mask,
    repeats,
    strided,
)
from npuscope.npu.numbers.dtypes import Array
from npuscope.npu.tensor import Tensor, shifted

VGATHER, VGATHERB, VSCATTER, VREDUCEV2 = opcode("vgather"), opcode("vgatherb"), opcode("vscatter"), opcode("vreducev2")
OFFSET_BYTES = 4
DATA_BLOCK = np.dtype((np.void, BLOCK))
ADDRESS_BITS = 0xFFFF_FFFF
"""Offsets, base and address are added in 32 bits."""

PATTERNS: dict[int, tuple[bool, ...]] = {
    1: (True, False),
    2: (False, True),
    3: (True, False, False, False),
    4: (False, True, False, False),
    5: (False, False, True, False),
    6: (False, False, False, True),
    7: (True,),
}
"""Built-in patterns of GatherMask, the first lane first (vendor's GatherMask page)."""
COUNTS_IN_ALL = frozenset({"2002"})
"""Architectures where GatherMask's count is that of the whole instruction; elsewhere it is that of each repeat."""


def lanes_of(itemsize: int) -> int:
    """Elements of one repeat of a gather: 8 data blocks, 4 of 8-bit elements (vendor's Gather page)."""
    return REPEAT_BYTES // max(itemsize, 2)


def _starts(core: Core, tensor: Tensor, offsets: Tensor, base: int, run: Run, lanes: int) -> Array:
    """Byte offsets from `tensor`'s address that the active lanes of a run name, (repeat, active lanes)."""
    moved = shifted(offsets, run.first * lanes * OFFSET_BYTES)
    named = core.load(moved, lane_layout(run, lanes, OFFSET_BYTES)).reshape(run.repeat, lanes).astype(np.int64)
    chosen = named if run.active is None else named[:, run.active]
    return ((chosen + base + tensor.address) & ADDRESS_BITS) - tensor.address


def gather(
    core: Core, site: int, destination: Tensor, source: Tensor, offsets: Tensor, base: int, extent: Extent,
    repeat_stride: int,
) -> None:
    """destination[lane] = the element at byte ``base + offsets[lane]`` of the source (vendor's Gather page).

    `offsets` are uint32, one per lane, repeats following one another; `repeat_stride` of the destination in data
    blocks. Lanes that the mask turns off keep their content and their offsets are not read.
    """
    itemsize = destination.dtype.itemsize
    lanes = lanes_of(itemsize)
    extent = begin(core, site, VGATHER, extent, lanes)
    for run in runs(extent, lanes):
        values = core.gather(source, _starts(core, source, offsets, base, run, lanes))
        if run.active is not None:
            every = np.zeros((run.repeat, lanes), destination.dtype)
            every[:, run.active] = values
            values = every
        layout = lane_layout(run, lanes, itemsize, repeat_stride)
        core.store(shifted(destination, run.first * repeat_stride * BLOCK), layout, values.reshape(layout.shape))


def scatter(
    core: Core, site: int, destination: Tensor, source: Tensor, offsets: Tensor, base: int, extent: Extent,
    repeat_stride: int,
) -> None:
    """The element at byte ``base + offsets[lane]`` of the destination = source[lane] (vendor's Scatter page).

    `repeat_stride` of the source in data blocks. Where two lanes name one place the later one stays.
    """
    itemsize = source.dtype.itemsize
    lanes = lanes_of(itemsize)
    extent = begin(core, site, VSCATTER, extent, lanes)
    for run in runs(extent, lanes):
        moved = shifted(source, run.first * repeat_stride * BLOCK)
        values = core.load(moved, lane_layout(run, lanes, itemsize, repeat_stride)).reshape(run.repeat, lanes)
        chosen = values if run.active is None else values[:, run.active]
        core.scatter(destination, _starts(core, destination, offsets, base, run, lanes), chosen)


def gather_blocks(
    core: Core, site: int, destination: Tensor, source: Tensor, offsets: Tensor, repeat: int, block_stride: int,
    repeat_stride: int,
) -> None:
    """8 data blocks a repeat, each from the byte offset in the source that `offsets` names (vendor's Gatherb page).

    Strides of the destination in data blocks; a block stride of 0 counts as 1.
    """
    core.begin(site, V, VGATHERB, repeat, work=repeat * REPEAT_BYTES // destination.dtype.itemsize)
    repeat = limited_repeat(core, repeat)
    if repeat == 0:
        return
    named = core.load(offsets, contiguous(repeat * BLOCKS_PER_REPEAT, OFFSET_BYTES)).astype(np.int64)
    starts = ((named + source.address) & ADDRESS_BITS) - source.address
    blocks = core.gather(source, starts, DATA_BLOCK).view(destination.dtype)
    layout = repeats(repeat, block_stride or 1, repeat_stride, destination.dtype.itemsize)
    core.store(destination, layout, blocks.reshape(layout.shape))


# -- by bit --------------------------------------------------------------------------------------------------------


def gather_mask(
    core: Core,
    site: int,
    destination: Tensor,
    source: Tensor,
    pattern: Tensor | int,
    count: int | None,
    repeat: int,
    block_stride: int,
    repeat_stride: int,
    pattern_stride: int,
) -> int:
    """Keep the source's elements whose bit is set, one after the other; returns how many (vendor's GatherMask page).

    `pattern` is a built-in pattern 1 to 7 or a tensor with a bit per element, the lowest first, read on inside a repeat
    and from `pattern_stride` data blocks further on in the next. `count` is None in normal mode, where a repeat is 256
    bytes; in counter mode it is the elements of each repeat, on 2002 those of all repeats.
    """
    itemsize = source.dtype.itemsize
    each = REPEAT_BYTES // itemsize
    if count is not None and core.chip.arch not in COUNTS_IN_ALL:
        each = count
    extent = Extent(count=count) if count is not None and core.chip.arch in COUNTS_IN_ALL else Extent(repeat)
    mask = Extent() if count is None else Extent(count=count)
    work = extent.count if extent.count >= 0 else repeat * each
    core.begin(site, V, VREDUCEV2, repeat, *mask_columns(mask), work=work)
    if isinstance(pattern, int) and pattern not in PATTERNS:
        core.fault("bad_operand", what="the pattern of GatherMask", value=pattern, limit="1 to 7")
        return 0
    kept = [
        _kept(core, source, pattern, run, each, block_stride, repeat_stride, pattern_stride)
        for run in (runs(extent, each) if each else ())
    ]
    values = np.concatenate(kept) if kept else np.empty(0, source.dtype)
    core.store(destination, contiguous(values.size, itemsize), values)
    return int(values.size)


def _kept(
    core: Core, source: Tensor, pattern: Tensor | int, run: Run, each: int, block_stride: int, repeat_stride: int,
    pattern_stride: int,
) -> Array:
    """The elements of a run's repeats whose bits are set."""
    number = each if run.active is None else int(run.active.sum())
    moved = shifted(source, run.first * repeat_stride * BLOCK)
    values = _rows(core, moved, run.repeat, number, block_stride, repeat_stride)
    if isinstance(pattern, int):
        flags = np.resize(PATTERNS[pattern], number)
        return values[:, flags].reshape(-1)
    packed_bits = shifted(pattern, run.first * pattern_stride * BLOCK).cast(np.dtype(np.uint8))
    packed = core.load(packed_bits, strided((run.repeat, -(-number // 8)), (pattern_stride * BLOCK, 1), 1))
    flags = np.unpackbits(packed, axis=1, bitorder="little", count=number).astype(bool)
    return values[flags]


def _rows(core: Core, source: Tensor, repeat: int, number: int, block_stride: int, repeat_stride: int) -> Array:
    """The first `number` elements of each repeat, (repeat, number); in counter mode a repeat may exceed 256 bytes."""
    itemsize = source.dtype.itemsize
    if block_stride == 1:
        return core.load(source, strided((repeat, number), (repeat_stride * BLOCK, itemsize), itemsize))
    blocks = -(-number * itemsize // BLOCK)
    lanes = blocks * BLOCK // itemsize
    mask = None if lanes == number else prefix_mask(number, lanes)
    values = core.load(source, repeats(repeat, block_stride, repeat_stride, itemsize, mask, blocks))
    return values.reshape(repeat, lanes)[:, :number]
