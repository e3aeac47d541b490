"""How an instruction walks a memory operand: an n-dimensional strided view and the footprint it leaves in the trace."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from npuscope.trace.footprint import Footprint, intern

BLOCK = 32
"""Bytes of a data block, the unit of on-chip strides."""
BLOCKS_PER_REPEAT = 8
REPEAT_BYTES = BLOCK * BLOCKS_PER_REPEAT


class Layout:
    """`shape` elements at byte `strides` from an operand's address; `mask` (bool, broadcastable) picks active lanes.

    `count` is set for a plain contiguous run, which has the fastest view. `number` is the interned footprint.
    """

    __slots__ = ("shape", "strides", "itemsize", "mask", "low", "high", "number", "count")

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        itemsize: int,
        footprint: Footprint,
        mask: np.ndarray | None = None,
        count: int = -1,
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.itemsize = itemsize
        self.mask = mask
        empty = footprint.empty
        self.low = 0 if empty else footprint.low
        self.high = 0 if empty else footprint.high
        self.number = intern(footprint)
        self.count = count

    def starts(self) -> np.ndarray:
        """Byte offset of every element from the operand's address, shaped like the layout (int64)."""
        offsets = np.zeros(self.shape, np.int64)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            steps = np.arange(extent, dtype=np.int64) * stride
            offsets += steps.reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        return offsets


@lru_cache(maxsize=4096)
def contiguous(count: int, itemsize: int) -> Layout:
    """`count` elements one after the other; shape (count,)."""
    return Layout((count,), (itemsize,), itemsize, Footprint(count * itemsize), count=count)


def _merged(nbytes: int, loops: tuple[tuple[int, int], ...]) -> Footprint:
    """Drop loops of one turn and fold loops that continue the run before them."""
    kept: list[tuple[int, int]] = []
    for count, stride in reversed(loops):
        if count == 1:
            continue
        if not kept and stride == nbytes and count > 0:
            nbytes *= count
        else:
            kept.append((count, stride))
    return Footprint(nbytes, tuple(reversed(kept)))


@lru_cache(maxsize=4096)
def strided(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Layout:
    """Any regular walk of up to four dimensions: byte `strides`, outermost first."""
    return Layout(shape, strides, itemsize, _merged(itemsize, tuple(zip(shape, strides, strict=True))))


@lru_cache(maxsize=4096)
def repeats(
    repeat: int,
    block_stride: int,
    repeat_stride: int,
    itemsize: int,
    mask: bytes | None = None,
    blocks: int = BLOCKS_PER_REPEAT,
) -> Layout:
    """A vector operand: shape (repeat, blocks, elements per block), strides in data blocks (hardware.md 4.1).

    `mask` holds one flag byte per lane of a repeat (None: all lanes active).
    """
    lanes = BLOCK // itemsize
    shape = (repeat, blocks, lanes)
    strides = (repeat_stride * BLOCK, block_stride * BLOCK, itemsize)
    if mask is None:
        return Layout(shape, strides, itemsize, _merged(itemsize, tuple(zip(shape, strides, strict=True))))
    flags = np.frombuffer(mask, np.bool_).reshape(blocks, lanes)
    loops = tuple(zip(shape, strides, strict=True))
    return Layout(shape, strides, itemsize, Footprint(itemsize, loops, mask, 2), mask=flags)


@lru_cache(maxsize=1024)
def prefix_mask(active: int, lanes: int) -> bytes:
    """Lane flags with the first `active` of `lanes` set."""
    return b"\1" * active + b"\0" * (lanes - active)


@lru_cache(maxsize=1024)
def bit_mask(words: tuple[int, ...], lanes: int) -> bytes:
    """Lane flags from 64-bit mask words, lowest word first (Ascend C: ``mask[0]`` covers lanes 0-63)."""
    value = 0
    for index, word in enumerate(words):
        value |= (word & 0xFFFF_FFFF_FFFF_FFFF) << (64 * index)
    return bytes((value >> lane) & 1 for lane in range(lanes))
