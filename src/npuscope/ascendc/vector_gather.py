"""Gather, Gatherb, Scatter and GatherMask."""

from __future__ import annotations

from npuscope.ascendc.operand_types import Types, absent, check_types, types_of, wrong_types
from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa import gather as isa
from npuscope.npu.isa.lanes import has_vector_unit
from npuscope.npu.isa.vector import Extent, count_extent, current_extent, set_lanes, set_words
from npuscope.npu.layout import BLOCK
from npuscope.npu.registers import FULL_MASK, NORMAL
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe

_B16_B32 = "int16_t uint16_t half int32_t uint32_t float"
_950 = _B16_B32 + " bfloat16_t int64_t uint64_t"
GATHERED: Types = {
    "": types_of(_B16_B32),
    "2201": types_of(_B16_B32 + " bfloat16_t"),
    "3510": types_of(_950),
}
GATHERED_COUNT: Types = GATHERED | {"3510": types_of(_950 + " int8_t uint8_t")}
BLOCKS: Types = {"": types_of("uint16_t uint32_t"), "3510": types_of(_950 + " int8_t uint8_t")}
SCATTERED: Types = {"": types_of(_B16_B32), "3510": types_of(_950)}
SCATTERED_COUNT: Types = SCATTERED | {"3510": types_of(_950 + " int8_t uint8_t")}
MASKED: Types = {
    "": types_of(_B16_B32),
    "2201": types_of(_B16_B32 + " bfloat16_t"),
    "3510": types_of(_B16_B32 + " bfloat16_t int8_t uint8_t"),
}
"""Element types from the vendor's Gather, Gatherb, Scatter and GatherMask pages."""
OFFSETS: Types = {"": types_of("uint32_t")}

GET_RSVD_CNT = opcode("get_rsvd_cnt")
REMAIN_COUNT = "rsvd_cnt"
"""The register with the number of elements that the last GatherMask kept."""
COUNT_BITS = 0xFFFF_FFFF


def _dense(tensor: Tensor) -> int:
    """The repeat stride, in data blocks, of an operand whose repeats follow one another."""
    itemsize = tensor.dtype.itemsize
    return isa.lanes_of(itemsize) * itemsize // BLOCK


# -- by element ----------------------------------------------------------------------------------------------------


def _gather(
    core: Core, site: int, dst: Tensor, src: Tensor, offset: Tensor, base: int, extent: Extent, stride: int,
    types: Types,
) -> None:
    check_types(core, site, "gather", types, dst, src)
    check_types(core, site, "gather", OFFSETS, offset)
    isa.gather(core, site, dst, src, offset, base, extent, stride)


@operation("ascendc.gather_l0")
def gather_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, src_offset: Tensor, src_base: int, mask: int, repeat: int,
    dst_rep_stride: int,
) -> None:
    """`mask` leading lanes of `repeat` repeats, from byte ``src_base + src_offset[lane]`` of the source."""
    if has_vector_unit(core):
        set_lanes(core, mask, dst.dtype.itemsize)
        extent = current_extent(core, repeat)
        _gather(core, site, dst, src, src_offset, src_base, extent, dst_rep_stride, GATHERED)


@operation("ascendc.gather_l1", variadic=("mask",))
def gather_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, src_offset: Tensor, src_base: int, mask: list[int], repeat: int,
    dst_rep_stride: int,
) -> None:
    """The same with one mask bit per lane."""
    if has_vector_unit(core):
        set_words(core, mask)
        extent = current_extent(core, repeat)
        _gather(core, site, dst, src, src_offset, src_base, extent, dst_rep_stride, GATHERED)


@operation("ascendc.gather_l2")
def gather_l2(
    core: Core, site: int, dst: Tensor, src: Tensor, src_offset: Tensor, src_base: int, count: int
) -> None:
    """The first `count` elements."""
    if has_vector_unit(core):
        extent = count_extent(core, count)
        _gather(core, site, dst, src, src_offset, src_base, extent, _dense(dst), GATHERED_COUNT)


def _scatter(
    core: Core, site: int, dst: Tensor, src: Tensor, offset: Tensor, base: int, extent: Extent, stride: int,
    types: Types,
) -> None:
    check_types(core, site, "scatter", types, dst, src)
    check_types(core, site, "scatter", OFFSETS, offset)
    isa.scatter(core, site, dst, src, offset, base, extent, stride)
    if core.chip.arch == "2201":
        absent(core, "Scatter", "Ascend310P and Ascend950 only")


@operation("ascendc.scatter_l0")
def scatter_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, dst_offset: Tensor, dst_base: int, mask: int, repeat: int,
    src_rep_stride: int,
) -> None:
    """`mask` leading lanes of `repeat` repeats, to byte ``dst_base + dst_offset[lane]`` of the destination."""
    if has_vector_unit(core):
        set_lanes(core, mask, src.dtype.itemsize)
        extent = current_extent(core, repeat)
        _scatter(core, site, dst, src, dst_offset, dst_base, extent, src_rep_stride, SCATTERED)


@operation("ascendc.scatter_l1", variadic=("mask",))
def scatter_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, dst_offset: Tensor, dst_base: int, mask: list[int], repeat: int,
    src_rep_stride: int,
) -> None:
    """The same with one mask bit per lane."""
    if has_vector_unit(core):
        set_words(core, mask)
        extent = current_extent(core, repeat)
        _scatter(core, site, dst, src, dst_offset, dst_base, extent, src_rep_stride, SCATTERED)


@operation("ascendc.scatter_l2")
def scatter_l2(
    core: Core, site: int, dst: Tensor, src: Tensor, dst_offset: Tensor, dst_base: int, count: int
) -> None:
    """The first `count` elements."""
    if has_vector_unit(core):
        extent = count_extent(core, count)
        _scatter(core, site, dst, src, dst_offset, dst_base, extent, _dense(src), SCATTERED_COUNT)


# -- by data block -------------------------------------------------------------------------------------------------


@operation("ascendc.gatherb_l0")
def gatherb_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, offset: Tensor, repeat: int, params: Record
) -> None:
    """8 data blocks a repeat, each from the byte offset in the source that `offset` names; all lanes take part."""
    if not has_vector_unit(core):
        return
    check_types(core, site, "gatherb", BLOCKS, dst, src)
    check_types(core, site, "gatherb", OFFSETS, offset)
    core.registers.mask = FULL_MASK
    isa.gather_blocks(core, site, dst, src, offset, repeat, params.dst_blk_stride, params.dst_rep_stride)


# -- by bit --------------------------------------------------------------------------------------------------------


@operation("ascendc.gather_mask")
def gather_mask(
    core: Core, site: int, dst: Tensor, src: Tensor, pattern: Tensor | int, reduce_mode: int, mask: int,
    params: Record,
) -> int:
    """Keep the elements whose bit is set; returns how many there are (rsvdCnt).

    With `reduce_mode` the instruction runs in counter mode over `mask` elements. The library writes `mask` to the mask
    register in both modes and leaves the mask mode normal (vendor's GatherMask page, constraints).
    """
    if not has_vector_unit(core):
        return 0
    check_types(core, site, "gather_mask", MASKED, dst, src)
    if isinstance(pattern, Tensor) and pattern.dtype.name != f"uint{8 * src.dtype.itemsize}":
        raise wrong_types(core, site, "gather_mask", "an unsigned pattern as wide as the elements", src, pattern)
    core.registers.mask_mode = NORMAL
    core.registers.mask = (mask & COUNT_BITS, 0)
    count = mask & COUNT_BITS if reduce_mode else None
    kept = isa.gather_mask(
        core, site, dst, src, pattern, count, params.repeat_times, params.src0_block_stride,
        params.src0_repeat_stride, params.src1_repeat_stride,
    )
    core.registers.values[REMAIN_COUNT] = kept
    return kept


@operation("ascendc.get_gather_mask_remain_count")
def get_gather_mask_remain_count(core: Core, site: int) -> int:
    """How many elements the last GatherMask kept, 0 before the first."""
    if not has_vector_unit(core):
        return 0
    core.begin(site, int(Pipe.S), GET_RSVD_CNT)
    kept = core.registers.values.get(REMAIN_COUNT, 0)
    assert isinstance(kept, int)
    return kept
