"""Copy from UB to UB on the vector unit, with masks and strides (vendor's Copy page, masked high-dimensional form)."""

from __future__ import annotations

from functools import lru_cache

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import (
    Instruction,
    check_mask,
    check_repeat,
    has_vector_unit,
    repeat_times,
    set_mask,
)
from npuscope.npu.core import Core
from npuscope.npu.isa.arithmetic import BF16, F16, F32, I16, I32, NARROW_AND_LONG, U16, U32, Pair
from npuscope.npu.isa.vector import Strides, V, current_extent, elementwise
from npuscope.npu.layout import BLOCK, Layout, prefix_mask, repeats
from npuscope.npu.numbers.dtypes import Array
from npuscope.npu.tensor import Tensor


def _same(values: Array) -> Array:
    return values


_COPY = Pair(_same, _same)
COPY = Instruction(
    "copy",
    "vcopy",
    {(dtype, dtype): _COPY for dtype in (F16, BF16, F32, I16, U16, I32, U32)},
    {(dtype, dtype): _COPY for dtype in NARROW_AND_LONG},
)


@operation("ascendc.copy_l0", variadic=("mask",))
def copy_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: list[int], repeat: int, params: Record, is_set_mask: int
) -> None:
    """Copy under mask bits."""
    _copy(core, site, dst, src, mask if is_set_mask else None, repeat, params)


@operation("ascendc.copy_l1")
def copy_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int, repeat: int, params: Record, is_set_mask: int
) -> None:
    """Copy of `mask` leading lanes in each repeat."""
    _copy(core, site, dst, src, mask if is_set_mask else None, repeat, params)


def _copy(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int | list[int] | None, repeat: int, params: Record
) -> None:
    if not has_vector_unit(core):
        return
    compute = COPY.choose(core, (dst.dtype, src.dtype), count_form=True)
    itemsize = dst.dtype.itemsize
    if mask is not None:
        set_mask(core, mask, itemsize)
    times = repeat_times(repeat)
    extent = current_extent(core, times)
    strides = ((params.dst_stride, params.dst_repeat_size), (params.src_stride, params.src_repeat_size))
    if extent.count < 0:
        elementwise(core, site, COPY.code, compute, dst, (src,), extent, strides)
    else:
        _copy_counted(core, site, dst, src, extent.count, times, strides)
    check_repeat(core, repeat)
    if mask is not None:
        check_mask(core, mask, itemsize)


def _copy_counted(
    core: Core, site: int, dst: Tensor, src: Tensor, count: int, repeat: int, strides: tuple[Strides, Strides]
) -> None:
    """Counter mode: unlike other instructions Copy moves `count` elements in every repeat (sanitizer.md 3.5)."""
    core.begin(site, V, COPY.code, repeat, 1, count, 0, work=count * repeat)
    itemsize = dst.dtype.itemsize
    source = _counted(repeat, count, *strides[1], itemsize)
    values = core.load(src, source)
    core.store(dst, _counted(repeat, count, *strides[0], itemsize), values.copy())


@lru_cache(maxsize=1024)
def _counted(repeat: int, count: int, block_stride: int, repeat_stride: int, itemsize: int) -> Layout:
    """`count` elements in each repeat, from as many blocks as they need."""
    lanes = BLOCK // itemsize
    blocks = max(-(-count // lanes), 1)
    mask = None if count == blocks * lanes else prefix_mask(count, blocks * lanes)
    return repeats(repeat, block_stride, repeat_stride, itemsize, mask, blocks)
