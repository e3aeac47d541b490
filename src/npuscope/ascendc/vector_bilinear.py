"""BilinearInterpolation with a mask count and with mask bits."""

from __future__ import annotations

from npuscope.ascendc.operand_types import Types, check_types, types_of
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core
from npuscope.npu.isa.bilinear import Interpolation, interpolate
from npuscope.npu.isa.lanes import has_vector_unit
from npuscope.npu.isa.vector import set_lanes, set_words
from npuscope.npu.layout import BLOCK
from npuscope.npu.registers import FULL_MASK, NORMAL
from npuscope.npu.tensor import Tensor

ELEMENTS: Types = {"": types_of("half")}
OFFSETS: Types = {"": types_of("uint32_t")}
LEAST_OFFSET, MOST_OFFSET = 128, 65534
"""Elements between vertical results (vendor's BilinearInterpolation page, vROffset)."""


def _interpolate(
    core: Core, site: int, dst: Tensor, src0: Tensor, offset: Tensor, src1: Tensor, tmp: Tensor, horizontal: int,
    per_block: int, block_stride: int, vertical_offset: int, vertical: int,
) -> None:
    check_types(core, site, "bilinear_interpolation", ELEMENTS, dst, src0, src1)
    check_types(core, site, "bilinear_interpolation", OFFSETS, offset)
    mask = None if core.registers.mask == FULL_MASK else core.registers.mask
    plan = Interpolation(mask, horizontal, vertical, bool(per_block), block_stride, vertical_offset)
    interpolate(core, site, dst, src0, offset, src1, tmp, plan)
    if not LEAST_OFFSET <= vertical_offset <= MOST_OFFSET:
        core.fault("bad_operand", what="vROffset", value=vertical_offset, limit=f"{LEAST_OFFSET} to {MOST_OFFSET}")
    if vertical_offset * dst.dtype.itemsize % BLOCK:
        nbytes = f"{vertical_offset * dst.dtype.itemsize} bytes"
        core.fault("bad_operand", what="vROffset", value=nbytes, limit=f"multiples of {BLOCK} bytes")


@operation("ascendc.bilinearInterpolation_l0")
def bilinear_interpolation_l0(
    core: Core, site: int, dst: Tensor, src0: Tensor, src0_offset: Tensor, src1: Tensor, mask: int, h_repeat: int,
    repeat_mode: int, dst_blk_stride: int, v_r_offset: int, v_repeat: int, shared_tmp_buffer: Tensor,
) -> None:
    """`mask` leading lanes of `v_repeat` sums of `h_repeat` weighted terms; the mask mode is normal afterwards."""
    if has_vector_unit(core):
        core.registers.mask_mode = NORMAL
        set_lanes(core, mask, src0.dtype.itemsize)
        _interpolate(
            core, site, dst, src0, src0_offset, src1, shared_tmp_buffer, h_repeat, repeat_mode, dst_blk_stride,
            v_r_offset, v_repeat,
        )


@operation("ascendc.bilinearInterpolation_l1", variadic=("mask",))
def bilinear_interpolation_l1(
    core: Core, site: int, dst: Tensor, src0: Tensor, src0_offset: Tensor, src1: Tensor, mask: list[int],
    h_repeat: int, repeat_mode: int, dst_blk_stride: int, v_r_offset: int, v_repeat: int, shared_tmp_buffer: Tensor,
) -> None:
    """The same with one mask bit per lane."""
    if has_vector_unit(core):
        core.registers.mask_mode = NORMAL
        set_words(core, mask)
        _interpolate(
            core, site, dst, src0, src0_offset, src1, shared_tmp_buffer, h_repeat, repeat_mode, dst_blk_stride,
            v_r_offset, v_repeat,
        )
