"""Filling vectors: Duplicate (a scalar to every element) and Brcb (each of 8 elements to a block)."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import (
    MAX_REPEAT,
    WIDE_ARCH,
    Instruction,
    count_level,
    has_vector_unit,
    strided_level,
    type_error,
)
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.arithmetic import BF16, F16, F32, I16, I32, NARROW_AND_LONG, U16, U32, Pair
from npuscope.npu.isa.vector import Extent, V, as_element, mask_columns
from npuscope.npu.layout import BLOCK, contiguous, repeats
from npuscope.npu.numbers.dtypes import FP8_E4M3, FP8_E5M2
from npuscope.npu.tensor import Tensor

WORDS = (F16, BF16, F32, I16, U16, I32, U32)
"""Types of 2 and 4 bytes (vendor's Duplicate and Brcb pages for NPU arch 2201)."""
BROADCAST_ELEMENTS = 8
VBRCB = opcode("vbrcb")


def _fill(value: Any) -> Any:
    return value


_FILL = Pair(_fill, _fill)
DUPLICATE = Instruction(
    "duplicate",
    "vector_dup",
    {(dtype,): _FILL for dtype in WORDS},
    {(dtype,): _FILL for dtype in (*NARROW_AND_LONG, FP8_E4M3, FP8_E5M2)},
)


@operation("ascendc.duplicate_l2")
def duplicate_l2(core: Core, site: int, dst: Tensor, scalar: Any, count: int) -> None:
    """`count` elements."""
    if has_vector_unit(core):
        count_level(core, site, DUPLICATE, dst, (), count, (as_element(scalar, dst.dtype),))


@operation("ascendc.duplicate_l0")
def duplicate_l0(
    core: Core, site: int, dst: Tensor, scalar: Any, mask: int, repeat: int, block_stride: int, repeat_stride: int,
    *, is_set_mask: bool = False,
) -> None:
    """Repeats with `mask` leading lanes."""
    _strided(core, site, dst, scalar, mask if is_set_mask else None, repeat, block_stride, repeat_stride)


@operation("ascendc.duplicate_l1", variadic=("mask",))
def duplicate_l1(
    core: Core, site: int, dst: Tensor, scalar: Any, mask: list[int], repeat: int, block_stride: int,
    repeat_stride: int, *, is_set_mask: bool = False,
) -> None:
    """Repeats under mask bits."""
    _strided(core, site, dst, scalar, mask if is_set_mask else None, repeat, block_stride, repeat_stride)


def _strided(
    core: Core, site: int, dst: Tensor, scalar: Any, mask: int | list[int] | None, repeat: int, block_stride: int,
    repeat_stride: int,
) -> None:
    """Strides arrive as signed numbers; the API has 16 bits for the block stride and 8 for the repeat stride."""
    if has_vector_unit(core):
        strides = ((block_stride & 0xFFFF, repeat_stride & 0xFF),)
        strided_level(core, site, DUPLICATE, dst, (), mask, repeat, strides, (as_element(scalar, dst.dtype),))


@operation("ascendc.brcb_l0")
def brcb_l0(core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, params: Record) -> None:
    """Each repeat takes the next 8 elements and fills a block of 32 bytes with each; masks have no part in it.

    A block stride of 0 is not defined; the vendor's Brcb page counts it as 1.
    """
    if not has_vector_unit(core):
        return
    taken = (*WORDS, *(NARROW_AND_LONG if core.chip.arch == WIDE_ARCH else ()))
    if dst.dtype != src.dtype or dst.dtype not in taken:
        raise type_error(core, "brcb", (dst.dtype, src.dtype), [(dtype,) for dtype in taken])
    times = min(max(repeat, 0), MAX_REPEAT)
    itemsize = dst.dtype.itemsize
    lanes = BLOCK // itemsize
    core.begin(site, V, VBRCB, times, *mask_columns(Extent(times)), work=times * BROADCAST_ELEMENTS * lanes)
    if repeat != times:
        core.fault("bad_operand", what="the repeat count", value=repeat, limit=f"0 to {MAX_REPEAT}")
    stride = params.dst_blk_stride
    if stride == 0:
        core.fault("bad_operand", what="dstBlkStride", value=0, limit="1 or more")
        stride = 1
    values = core.load(src, contiguous(times * BROADCAST_ELEMENTS, itemsize)).copy()
    layout = repeats(times, stride, params.dst_rep_stride, itemsize)
    core.store(dst, layout, values.reshape(times, BROADCAST_ELEMENTS, 1))
