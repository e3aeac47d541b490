"""The DEQSCALE register and CastDequant of the vector unit (hardware.md 5; vendor's SetDeqScale and CastDequant pages).

The register holds a half (int32 -> half), a quantisation word (int16 -> 8 bits) or the UB address of 16 words in units
of 32 bytes (vector form). It is 1.0 as a half until a kernel sets it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from npuscope.npu.core import Core
from npuscope.npu.isa.vector import Extent, Strides, V, lanes_per_repeat, mask_columns, pieces
from npuscope.npu.layout import BLOCK, Layout, contiguous
from npuscope.npu.numbers import cast_dequant_b8, decode_quant_word
from npuscope.npu.numbers.dtypes import F16, Array
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.footprint import Footprint
from npuscope.trace.schema import Space

REGISTER = "deq_scale"
VECTOR_BUFFER = "deq_scale_buffer"
"""Names in `Registers.values`: the register, and the trace buffer that a vector of words lies in."""
HALF_ONE = 0x3C00
WORDS = 16
LANES = 16
"""int16 elements of a block, each with a word of its own in the vector form."""
_SIGNED = np.uint64(1 << 46)
_ADDRESS_BITS = 0x3FFF


def register_value(core: Core) -> int:
    """The 64 bits of DEQSCALE."""
    value = core.registers.values.get(REGISTER, HALF_ONE)
    assert isinstance(value, int)
    return value


def half_scale(core: Core) -> Array:
    """The half in DEQSCALE, as an array of no dimensions."""
    return np.array(register_value(core) & 0xFFFF, np.uint16).view(F16)


def dequantised(values: Array, words: Array) -> Array:
    """int16 `values` as bytes: each int8 or uint8 as the sign flag of its word says; shapes broadcast."""
    signed = cast_dequant_b8(values, words | _SIGNED).view(np.uint8)
    unsigned = cast_dequant_b8(values, words & ~_SIGNED)
    return np.where(decode_quant_word(words).signed, signed, unsigned)


@lru_cache(maxsize=1024)
def half_blocks(repeat: int, block_stride: int, repeat_stride: int, mask: bytes | None) -> Layout:
    """16 bytes in each of the 8 blocks of a repeat: shape (repeat, 8, 16), strides in blocks of 32 bytes."""
    shape = (repeat, 8, LANES)
    strides = (repeat_stride * BLOCK, block_stride * BLOCK, 1)
    if mask is None:
        return Layout(shape, strides, 1, Footprint(LANES, tuple(zip(shape[:2], strides[:2], strict=True))))
    flags = np.frombuffer(mask, np.bool_).reshape(8, LANES)
    return Layout(shape, strides, 1, Footprint(1, tuple(zip(shape, strides, strict=True)), mask, 2), mask=flags)


def dequantise_to_bytes(
    core: Core,
    site: int,
    opcode: int,
    destination: Tensor,
    source: Tensor,
    extent: Extent,
    strides: tuple[Strides, Strides],
    *,
    vector: bool,
    upper: bool,
) -> None:
    """One instruction: int16 -> 8 bits; each source block fills the lower or the `upper` half of a destination block.

    `vector` takes word j for element j of a block, from UB.
    """
    mode, low, high = mask_columns(extent)
    work = extent.count if extent.count >= 0 else extent.repeat * lanes_per_repeat(2)
    core.begin(site, V, opcode, extent.repeat, mode, low, high, work)
    words = np.array(register_value(core), np.uint64)
    if vector:
        words = core.load(_word_vector(core), contiguous(WORDS, 8)).copy()
    for piece in pieces(extent, (2, 2), strides, False):
        layout = piece.layouts[1]
        mask = None if layout.mask is None else layout.mask.tobytes()
        values = core.load(shifted(source, piece.advance * strides[1][1] * BLOCK), layout)
        target = shifted(destination, piece.advance * strides[0][1] * BLOCK + (LANES if upper else 0))
        result = dequantised(np.ascontiguousarray(values), words)
        core.store(target, half_blocks(piece.repeat, *strides[0], mask), result.view(destination.dtype))


def _word_vector(core: Core) -> Tensor:
    """The 16 words in UB that DEQSCALE points to."""
    address = (register_value(core) & _ADDRESS_BITS) * BLOCK
    buffer = core.registers.values.get(VECTOR_BUFFER, 0)
    assert isinstance(buffer, int)
    return Tensor(core.memories[Space.UB], address, np.dtype(np.uint64), buffer)
