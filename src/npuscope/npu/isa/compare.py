"""Comparison into bits and selection by bits on the vector unit (hardware.md 4.1; vendor's Compare, Select pages)."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.npu.core import Core
from npuscope.npu.isa.vector import (
    Compute,
    Extent,
    Piece,
    Strides,
    V,
    lanes_per_repeat,
    mask_columns,
    pieces,
)
from npuscope.npu.layout import BLOCK, bit_mask, contiguous, prefix_mask, repeats
from npuscope.npu.numbers.dtypes import Array
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Space

U8 = np.dtype(np.uint8)
CMPMASK_BYTES = 16


def not_equal(a: Array, b: Any) -> Array:
    """a != b, but false where either is NaN: the device differs from IEEE there (boundary-value page, Compare)."""
    return np.asarray((a < b) | (a > b))


COMPARISONS: tuple[Compute, ...] = (np.less, np.greater, np.equal, np.less_equal, np.greater_equal, not_equal)
"""By CMPMODE: LT, GT, EQ, LE, GE, NE (frontends.md 2)."""


def lane_flags(extent: Extent, lanes: int) -> Array | None:
    """The lanes of one repeat that an extent's mask leaves on, None for all."""
    if extent.count >= 0:
        return np.frombuffer(prefix_mask(min(extent.count, lanes), lanes), np.bool_)
    if extent.mask is None:
        return None
    return np.frombuffer(bit_mask(extent.mask, lanes), np.bool_)


def compare(
    core: Core,
    site: int,
    opcode: int,
    comparison: Compute,
    destination: Tensor | None,
    sources: tuple[Tensor, ...],
    repeat: int,
    strides: tuple[Strides, ...],
    scalars: tuple[Any, ...] = (),
    extent: Extent | None = None,
) -> None:
    """One instruction: a bit for each element of `repeat` repeats, to `destination` without gaps or, None, to CMPMASK.

    `strides` are those of the sources. Lanes that the mask of `extent` turns off give 0; without an extent no mask
    counts.
    """
    itemsize = sources[0].dtype.itemsize
    lanes = lanes_per_repeat(itemsize)
    core.begin(site, V, opcode, repeat, *mask_columns(extent or Extent(repeat)), work=repeat * lanes)
    flags = None if extent is None else lane_flags(extent, lanes)
    mask = None if flags is None else flags.tobytes()
    values = []
    for tensor, (block, step) in zip(sources, strides, strict=True):
        if (block, step) == (1, lanes * itemsize // BLOCK) and mask is None:
            layout = contiguous(repeat * lanes, itemsize)
        else:
            layout = repeats(repeat, block, step, itemsize, mask)
        values.append(core.load(tensor, layout).reshape(repeat, lanes))
    result = comparison(*values, *scalars)
    if flags is not None:
        result = result & flags
    packed = np.packbits(result.reshape(-1), bitorder="little")
    if destination is None:
        core.registers.compare_mask[: packed.size] = packed
    else:
        core.store(destination.cast(U8), contiguous(packed.size, 1), packed)


def selection_bits(core: Core, mask: Tensor, count: int) -> Array:
    """`count` selection bits from the start of `mask`, recorded as a read."""
    packed = core.load(mask.cast(U8), contiguous(-(-count // 8), 1))
    return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


def register_bits(core: Core, lanes: int) -> Array:
    """The bits of CMPMASK that a repeat of `lanes` elements uses."""
    return np.unpackbits(core.registers.compare_mask, count=min(lanes, 8 * CMPMASK_BYTES), bitorder="little").view(
        np.bool_
    )


def elements(extent: Extent, lanes: int) -> int:
    """Elements an instruction goes over, masked ones included."""
    return extent.count if extent.count >= 0 else extent.repeat * lanes


def begin_select(core: Core, site: int, opcode: int, extent: Extent, lanes: int) -> None:
    """The trace row of a selection."""
    core.begin(site, V, opcode, extent.repeat, *mask_columns(extent), work=elements(extent, lanes))


def select(
    core: Core,
    bits: Array,
    destination: Tensor,
    first: Tensor,
    second: Any,
    extent: Extent,
    strides: tuple[Strides, ...],
) -> None:
    """The effect of a selection: `first` where a bit is set, else `second` (a tensor or an element).

    `bits` has a bit for each element of the extent, or one repeat's bits that every repeat uses again. `strides` are
    those of the destination and the tensors.
    """
    tensors = (destination, first, second) if isinstance(second, Tensor) else (destination, first)
    itemsizes = tuple([tensor.dtype.itemsize for tensor in tensors])
    lanes = lanes_per_repeat(*itemsizes)
    for piece in pieces(extent, itemsizes, strides[: len(tensors)]):
        moved = [
            shifted(tensor, piece.advance * step * BLOCK) if piece.advance else tensor
            for tensor, (_, step) in zip(tensors, strides, strict=False)
        ]
        chosen = _bits_of(bits, piece, lanes)
        values = [core.load(tensor, layout) for tensor, layout in zip(moved[1:], piece.layouts[1:], strict=True)]
        other = values[1] if len(values) > 1 else second
        core.store(moved[0], piece.layouts[0], np.where(chosen, values[0], other))


def _bits_of(bits: Array, piece: Piece, lanes: int) -> Array:
    """The bits for a piece, shaped like its layouts."""
    shape = piece.layouts[0].shape
    count = int(np.prod(shape))
    if bits.size == lanes and (piece.repeat > 1 or piece.advance):
        return np.resize(bits, count).reshape(shape)
    start = piece.advance * lanes
    return np.resize(bits[start:], count).reshape(shape)


def read_register(core: Core, source: Tensor) -> None:
    """SetCmpMask: CMPMASK from the 16 bytes at `source`."""
    core.registers.compare_mask[:] = core.load(source.cast(U8), contiguous(CMPMASK_BYTES, 1))


def fill_register(core: Core, value: Array) -> None:
    """CMPMASK as the library leaves it after it put `value` (bytes of a scalar or an address) there."""
    raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    core.registers.compare_mask[: raw.size] = raw


def peek_register_from(core: Core, mask: Tensor) -> None:
    """CMPMASK from the 16 bytes at `mask`, without a record: the library loads more than the selection uses."""
    core.registers.compare_mask[:] = core.view(mask.cast(U8), contiguous(CMPMASK_BYTES, 1))


def tensor_at_register(core: Core, site: int, nbytes: int) -> Tensor:
    """The selection bits in UB whose address CMPMASK holds."""
    address = int(core.registers.compare_mask[:4].view(np.uint32)[0])
    buffer = core.raw_tensor(Space.UB, address, nbytes, site, "selection mask", "uint8")
    return Tensor(core.memories[Space.UB], address, U8, buffer, nbytes)
