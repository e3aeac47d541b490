"""Reductions: BlockReduce*, PairReduceSum, RepeatReduceSum, WholeReduce* and ReduceMax, ReduceMin, ReduceSum."""

from __future__ import annotations

from npuscope.ascendc.operand_types import Types, check_types, types_of, wrong_types
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.lanes import has_vector_unit
from npuscope.npu.isa.reduce import (
    MAX,
    MIN,
    SUM,
    VALUE_INDEX,
    reduce_blocks,
    reduce_pairs,
    reduce_repeats_best,
    reduce_repeats_sum,
)
from npuscope.npu.isa.reduce_all import reduce_all_best, reduce_all_sum
from npuscope.npu.isa.vector import Extent, count_extent, current_extent, set_lanes, set_words
from npuscope.npu.layout import BLOCKS_PER_REPEAT
from npuscope.npu.numbers import dtype_of
from npuscope.npu.tensor import Tensor

FLOATS: Types = {"": types_of("half float")}
BEST: Types = FLOATS | {"3510": types_of("half float int16_t uint16_t int32_t uint32_t")}
BEST_OF_COUNT: Types = FLOATS | {"3510": BEST["3510"] | types_of("int64_t uint64_t")}
SUMS: Types = FLOATS | {"3510": types_of("half float int32_t uint32_t")}
SUM_OF_COUNT: Types = FLOATS | {"3510": SUMS["3510"] | types_of("int64_t uint64_t")}
"""Element types from the vendor's ReduceDataBlock, ReducePairElem, ReduceRepeat, ReduceMax and ReduceSum pages."""

WIDENING = {dtype_of("int16_t"): dtype_of("int32_t"), dtype_of("uint16_t"): dtype_of("uint32_t")}
"""What the sums of repeats are on 3510 where they are wider than the source."""
ORDERS = {"2002": (0, 1)}
"""ReduceOrders that an architecture has, where not all four."""

VCADD, VCPADD = opcode("vcadd"), opcode("vcpadd")
BLOCK_OPCODES = {SUM: opcode("vcgadd"), MAX: opcode("vcgmax"), MIN: opcode("vcgmin")}
REPEAT_OPCODES = {MAX: opcode("vcmax"), MIN: opcode("vcmin")}
ALL_OPCODES = {SUM: opcode("reduce_sum"), MAX: opcode("reduce_max"), MIN: opcode("reduce_min")}


def _with_lanes(core: Core, mask: int, source: Tensor, repeat: int, set_mask: bool = True) -> Extent:
    if set_mask:
        set_lanes(core, mask, source.dtype.itemsize)
    return current_extent(core, repeat)


def _with_words(core: Core, mask: list[int], repeat: int, set_mask: bool = True) -> Extent:
    if set_mask:
        set_words(core, mask)
    return current_extent(core, repeat)


# -- per data block ------------------------------------------------------------------------------------------------


def _register_blocks(kind: str) -> None:
    name = f"block_reduce_{kind}"

    def run(
        core: Core, site: int, dst: Tensor, src: Tensor, extent: Extent, step: int, block: int, stride: int
    ) -> None:
        check_types(core, site, name, FLOATS, dst, src)
        reduce_blocks(core, site, BLOCK_OPCODES[kind], kind, dst, src, extent, (block, stride), step)

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mask: int, dst_rep_stride: int,
        src_blk_stride: int, src_rep_stride: int,
    ) -> None:
        if has_vector_unit(core):
            extent = _with_lanes(core, mask, src, repeat)
            run(core, site, dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride)

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mask: list[int], dst_rep_stride: int,
        src_blk_stride: int, src_rep_stride: int,
    ) -> None:
        if has_vector_unit(core):
            extent = _with_words(core, mask, repeat)
            run(core, site, dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride)


for _kind in (SUM, MAX, MIN):
    _register_blocks(_kind)


# -- per pair ------------------------------------------------------------------------------------------------------


@operation("ascendc.pair_reduce_sum_l0")
def pair_reduce_sum_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mask: int, dst_rep_stride: int, src_blk_stride: int,
    src_rep_stride: int, *, is_set_mask: bool = False,
) -> None:
    """Sums of neighbours; `dst_rep_stride` counts 128 bytes, what a repeat leaves."""
    if has_vector_unit(core):
        check_types(core, site, "pair_reduce_sum", FLOATS, dst, src)
        extent = _with_lanes(core, mask, src, repeat, is_set_mask)
        reduce_pairs(core, site, VCPADD, dst, src, extent, (src_blk_stride, src_rep_stride), dst_rep_stride)


@operation("ascendc.pair_reduce_sum_l1", variadic=("mask",))
def pair_reduce_sum_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mask: list[int], dst_rep_stride: int,
    src_blk_stride: int, src_rep_stride: int, *, is_set_mask: bool = False,
) -> None:
    """Sums of neighbours, one mask bit per lane."""
    if has_vector_unit(core):
        check_types(core, site, "pair_reduce_sum", FLOATS, dst, src)
        extent = _with_words(core, mask, repeat, is_set_mask)
        reduce_pairs(core, site, VCPADD, dst, src, extent, (src_blk_stride, src_rep_stride), dst_rep_stride)


# -- per repeat ----------------------------------------------------------------------------------------------------


def _sum_repeats(
    core: Core, site: int, name: str, dst: Tensor, src: Tensor, extent: Extent, step: int, block: int, stride: int
) -> None:
    if core.chip.arch == "3510" and src.dtype in WIDENING:
        if dst.dtype != WIDENING[src.dtype]:
            raise wrong_types(core, site, name, "a 32-bit destination for 16-bit integers", dst, src)
    else:
        check_types(core, site, name, SUMS, dst, src)
    reduce_repeats_sum(core, site, VCADD, dst, src, extent, (block, stride), step)


@operation("ascendc.repeat_reduce_sum_l0")
def repeat_reduce_sum_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, repeat: int, mask: int, dst_blk_stride: int, src_blk_stride: int,
    dst_rep_stride: int, src_rep_stride: int, *, is_set_mask: bool = False,
) -> None:
    """The sum of each repeat, results `dst_rep_stride` elements apart; the instruction has no `dst_blk_stride`."""
    if has_vector_unit(core):
        extent = _with_lanes(core, mask, src, repeat, is_set_mask)
        _sum_repeats(
            core, site, "repeat_reduce_sum", dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride
        )


@operation("ascendc.whole_reduce_sum_l0")
def whole_reduce_sum_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int, repeat: int, dst_rep_stride: int, src_blk_stride: int,
    src_rep_stride: int, *, is_set_mask: bool = False,
) -> None:
    """The sum of each repeat, results `dst_rep_stride` elements apart."""
    if has_vector_unit(core):
        extent = _with_lanes(core, mask, src, repeat, is_set_mask)
        _sum_repeats(core, site, "whole_reduce_sum", dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride)


@operation("ascendc.whole_reduce_sum_l1", variadic=("mask",))
def whole_reduce_sum_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: list[int], repeat: int, dst_rep_stride: int,
    src_blk_stride: int, src_rep_stride: int, *, is_set_mask: bool = False,
) -> None:
    """The sum of each repeat, one mask bit per lane."""
    if has_vector_unit(core):
        extent = _with_words(core, mask, repeat, is_set_mask)
        _sum_repeats(core, site, "whole_reduce_sum", dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride)


def _register_whole(kind: str) -> None:
    name = f"whole_reduce_{kind}"

    def run(
        core: Core, site: int, dst: Tensor, src: Tensor, extent: Extent, step: int, block: int, stride: int, order: int
    ) -> None:
        check_types(core, site, name, BEST, dst, src)
        taken = ORDERS.get(core.chip.arch, (0, 1, 2, 3))
        used = order if order in taken else VALUE_INDEX
        reduce_repeats_best(core, site, REPEAT_OPCODES[kind], kind, dst, src, extent, (block, stride), step, used)
        if used != order:
            core.fault("bad_operand", what="the reduce order", value=order, limit=f"{taken[0]} to {taken[-1]}")

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src: Tensor, mask: int, repeat: int, dst_rep_stride: int,
        src_blk_stride: int, src_rep_stride: int, *, order: int = VALUE_INDEX, is_set_mask: bool = False,
    ) -> None:
        if has_vector_unit(core):
            extent = _with_lanes(core, mask, src, repeat, is_set_mask)
            run(core, site, dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride, order)

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src: Tensor, mask: list[int], repeat: int, dst_rep_stride: int,
        src_blk_stride: int, src_rep_stride: int, *, order: int = VALUE_INDEX, is_set_mask: bool = False,
    ) -> None:
        if has_vector_unit(core):
            extent = _with_words(core, mask, repeat, is_set_mask)
            run(core, site, dst, src, extent, dst_rep_stride, src_blk_stride, src_rep_stride, order)


# -- to one value --------------------------------------------------------------------------------------------------


def _register_best(kind: str) -> None:
    name = f"reduce_{kind}"
    code = ALL_OPCODES[kind]

    def run(
        core: Core, site: int, dst: Tensor, src: Tensor, tmp: Tensor, extent: Extent, stride: int, index: int,
        types: Types,
    ) -> None:
        check_types(core, site, name, types, dst, src)
        reduce_all_best(core, site, code, kind, dst, src, tmp.cast(src.dtype), extent, stride, bool(index))

    @operation(f"ascendc.{name}_l0")
    def level0(
        core: Core, site: int, dst: Tensor, src: Tensor, shared_tmp_buffer: Tensor, mask: int, repeat: int,
        src_rep_stride: int, cal_index: int,
    ) -> None:
        if has_vector_unit(core):
            extent = _with_lanes(core, mask, src, repeat)
            run(core, site, dst, src, shared_tmp_buffer, extent, src_rep_stride, cal_index, BEST)

    @operation(f"ascendc.{name}_l1", variadic=("mask",))
    def level1(
        core: Core, site: int, dst: Tensor, src: Tensor, shared_tmp_buffer: Tensor, mask: list[int], repeat: int,
        src_rep_stride: int, cal_index: int,
    ) -> None:
        if has_vector_unit(core):
            extent = _with_words(core, mask, repeat)
            run(core, site, dst, src, shared_tmp_buffer, extent, src_rep_stride, cal_index, BEST)

    @operation(f"ascendc.{name}_l2")
    def level2(
        core: Core, site: int, dst: Tensor, src: Tensor, shared_tmp_buffer: Tensor, count: int, cal_index: int
    ) -> None:
        if has_vector_unit(core):
            extent = count_extent(core, count)
            run(core, site, dst, src, shared_tmp_buffer, extent, BLOCKS_PER_REPEAT, cal_index, BEST_OF_COUNT)


for _kind in (MAX, MIN):
    _register_whole(_kind)
    _register_best(_kind)


def _sum_all(
    core: Core, site: int, dst: Tensor, src: Tensor, tmp: Tensor, extent: Extent, stride: int, types: Types
) -> None:
    check_types(core, site, "reduce_sum", types, dst, src)
    reduce_all_sum(core, site, ALL_OPCODES[SUM], dst, src, tmp.cast(src.dtype), extent, stride)


@operation("ascendc.reduce_sum_l0")
def reduce_sum_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, shared_tmp_buffer: Tensor, mask: int, repeat: int,
    src_rep_stride: int,
) -> None:
    """The sum of `repeat` repeats of `mask` leading lanes."""
    if has_vector_unit(core):
        extent = _with_lanes(core, mask, src, repeat)
        _sum_all(core, site, dst, src, shared_tmp_buffer, extent, src_rep_stride, SUMS)


@operation("ascendc.reduce_sum_l1", variadic=("mask",))
def reduce_sum_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, shared_tmp_buffer: Tensor, mask: list[int], repeat: int,
    src_rep_stride: int,
) -> None:
    """The sum of `repeat` repeats, one mask bit per lane."""
    if has_vector_unit(core):
        extent = _with_words(core, mask, repeat)
        _sum_all(core, site, dst, src, shared_tmp_buffer, extent, src_rep_stride, SUMS)


@operation("ascendc.reduce_sum_l2")
def reduce_sum_l2(core: Core, site: int, dst: Tensor, src: Tensor, shared_tmp_buffer: Tensor, count: int) -> None:
    """The sum of the first `count` elements."""
    if has_vector_unit(core):
        extent = count_extent(core, count)
        _sum_all(core, site, dst, src, shared_tmp_buffer, extent, BLOCKS_PER_REPEAT, SUM_OF_COUNT)
