"""Compare, Compares, Select and the CMPMASK register (hardware.md 4.1; vendor's pages of the memory-vector API).

Compare writes a bit for each element, eight to a byte, lowest first. Masks have no part in it on NPU arch 2002 and
2201: Compare and Compares neither set the mask registers there nor look at them in normal mode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import (
    WIDE_ARCH,
    binary_strides,
    check_mask,
    check_repeat,
    has_vector_unit,
    repeat_times,
    set_mask,
    type_error,
    unary_strides,
)
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.arithmetic import BF16, F16, F32, I8, I16, I32, NARROW_AND_LONG, U8, U16, U32, U64, Types
from npuscope.npu.isa.compare import (
    CMPMASK_BYTES,
    COMPARISONS,
    begin_select,
    compare,
    elements,
    fill_register,
    peek_register_from,
    read_register,
    register_bits,
    select,
    selection_bits,
    tensor_at_register,
)
from npuscope.npu.isa.vector import (
    DENSE,
    Extent,
    Strides,
    V,
    as_element,
    count_extent,
    current_extent,
    lanes_per_repeat,
)
from npuscope.npu.layout import contiguous
from npuscope.npu.tensor import Tensor

VCMPV, VCMPVS, VCMP, VSEL = opcode("vcmpv"), opcode("vcmpvs"), opcode("vcmp"), opcode("vsel")
GET_MASK, SET_MASK = opcode("get_cmpmask"), opcode("set_cmpmask")
EQ = 2
FLOATS = (F16, F32)
WIDER = (I16, U16, U32, BF16)
REGISTER_MODE, SCALAR_MODE, TENSOR_MODE = 0, 1, 2
"""SELMODE (frontends.md 2)."""


# -- compare ---------------------------------------------------------------------------------------------------------


def _check_types(
    core: Core, name: str, mode: int, dst: Tensor, sources: tuple[Tensor, ...], count_form: bool
) -> None:
    """Raises UserError for element types that a comparison does not take: int32 is for EQ alone on arch 2201."""
    taken: tuple[np.dtype[Any], ...] = FLOATS
    if core.chip.arch == WIDE_ARCH:
        taken = (*FLOATS, I32, *WIDER, *(NARROW_AND_LONG if count_form else ()))
    elif mode == EQ:
        taken = (*FLOATS, I32)
    dtype = sources[0].dtype
    if dst.dtype not in (I8, U8) or dtype not in taken or any([source.dtype != dtype for source in sources]):
        types: Types = (dst.dtype, *[source.dtype for source in sources])
        raise type_error(core, name, types, [(U8, kind) for kind in taken])


def _counted(
    core: Core, site: int, name: str, code: int, mode: int, dst: Tensor, sources: tuple[Tensor, ...], count: int,
    scalars: tuple[Any, ...] = (),
) -> None:
    """The count form: whole repeats of 256 bytes; elements beyond the last whole one are not compared."""
    if not has_vector_unit(core):
        return
    _check_types(core, name, mode, dst, sources, True)
    lanes = lanes_per_repeat(sources[0].dtype.itemsize)
    repeat = max(count, 0) // lanes
    compare(core, site, code, COMPARISONS[mode], dst, sources, repeat, (DENSE,) * len(sources), scalars)
    if count < 0 or count % lanes:
        core.fault("bad_operand", what="the element count", value=count, limit=f"multiples of {lanes}")


def _strided(
    core: Core, site: int, name: str, code: int, mode: int, dst: Tensor, sources: tuple[Tensor, ...],
    mask: int | list[int] | None, repeat: int, strides: tuple[Strides, ...], scalars: tuple[Any, ...] = (),
) -> None:
    if not has_vector_unit(core):
        return
    _check_types(core, name, mode, dst, sources, False)
    itemsize = sources[0].dtype.itemsize
    masked = core.chip.arch == WIDE_ARCH
    if masked and mask is not None:
        set_mask(core, mask, itemsize)
    times = repeat_times(repeat)
    extent = current_extent(core, times)
    if extent.count >= 0:
        times = extent.count // lanes_per_repeat(itemsize)
    lanes = extent if masked and extent.mask is not None else None
    compare(core, site, code, COMPARISONS[mode], dst, sources, times, strides, scalars, lanes)
    check_repeat(core, repeat)
    if masked and mask is not None:
        check_mask(core, mask, itemsize)


@operation("ascendc.compare_l2")
def compare_l2(core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, count: int, *, cmp_mode: int) -> None:
    """Compare of `count` elements."""
    _counted(core, site, "compare", VCMPV, cmp_mode, dst, (src0, src1), count)


@operation("ascendc.compare_l0")
def compare_l0(
    core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: int, repeat: int, params: Record,
    *, cmp_mode: int, is_set_mask: bool = False,
) -> None:
    """Compare of repeats."""
    words = mask if is_set_mask else None
    _strided(core, site, "compare", VCMPV, cmp_mode, dst, (src0, src1), words, repeat, binary_strides(params)[1:])


@operation("ascendc.compare_l1", variadic=("mask",))
def compare_l1(
    core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, mask: list[int], repeat: int, params: Record,
    *, cmp_mode: int, is_set_mask: bool = False,
) -> None:
    """Compare of repeats, mask bits."""
    words = mask if is_set_mask else None
    _strided(core, site, "compare", VCMPV, cmp_mode, dst, (src0, src1), words, repeat, binary_strides(params)[1:])


@operation("ascendc.compare_scalar_l2")
def compare_scalar_l2(
    core: Core, site: int, dst: Tensor, src0: Tensor, scalar: Any, count: int, *, cmp_mode: int
) -> None:
    """Compares of `count` elements."""
    scalars = (as_element(scalar, src0.dtype),)
    _counted(core, site, "compare_scalar", VCMPVS, cmp_mode, dst, (src0,), count, scalars)


@operation("ascendc.compare_scalar_l0")
def compare_scalar_l0(
    core: Core, site: int, dst: Tensor, src0: Tensor, scalar: Any, mask: int, repeat: int, params: Record,
    *, cmp_mode: int, is_set_mask: bool = False,
) -> None:
    """Compares of repeats."""
    words = mask if is_set_mask else None
    _strided(core, site, "compare_scalar", VCMPVS, cmp_mode, dst, (src0,), words, repeat, unary_strides(params)[1:],
             (as_element(scalar, src0.dtype),))


@operation("ascendc.compare_scalar_l1", variadic=("mask",))
def compare_scalar_l1(
    core: Core, site: int, dst: Tensor, src0: Tensor, scalar: Any, mask: list[int], repeat: int, params: Record,
    *, cmp_mode: int, is_set_mask: bool = False,
) -> None:
    """Compares of repeats, mask bits."""
    words = mask if is_set_mask else None
    _strided(core, site, "compare_scalar", VCMPVS, cmp_mode, dst, (src0,), words, repeat, unary_strides(params)[1:],
             (as_element(scalar, src0.dtype),))


@operation("ascendc.compare_r_l0")
def compare_r_l0(
    core: Core, site: int, src0: Tensor, src1: Tensor, mask: int, params: Record,
    *, cmp_mode: int, is_set_mask: bool = False,
) -> None:
    """Compare of one repeat into CMPMASK."""
    _to_register(core, site, src0, src1, mask if is_set_mask else None, params, cmp_mode)


@operation("ascendc.compare_r_l1", variadic=("mask",))
def compare_r_l1(
    core: Core, site: int, src0: Tensor, src1: Tensor, mask: list[int], params: Record,
    *, cmp_mode: int, is_set_mask: bool = False,
) -> None:
    """Compare of one repeat into CMPMASK, mask bits."""
    _to_register(core, site, src0, src1, mask if is_set_mask else None, params, cmp_mode)


def _to_register(
    core: Core, site: int, src0: Tensor, src1: Tensor, mask: int | list[int] | None, params: Record, mode: int
) -> None:
    """Bits of lanes that the mask turns off are 0."""
    if not has_vector_unit(core):
        return
    if src0.dtype not in FLOATS or src1.dtype != src0.dtype:
        raise type_error(core, "compare_r", (src0.dtype, src1.dtype), [(dtype,) for dtype in FLOATS])
    itemsize = src0.dtype.itemsize
    if mask is not None:
        set_mask(core, mask, itemsize)
    extent = current_extent(core, 1)
    compare(core, site, VCMP, COMPARISONS[mode], None, (src0, src1), 1, binary_strides(params)[1:], (), extent)
    if mask is not None:
        check_mask(core, mask, itemsize)


@operation("ascendc.get_cmp_mask")
def get_cmp_mask(core: Core, site: int, dst: Tensor) -> None:
    """The 128 bits of CMPMASK to `dst`."""
    if has_vector_unit(core):
        core.begin(site, V, GET_MASK, work=CMPMASK_BYTES)
        core.store(dst.cast(U8), contiguous(CMPMASK_BYTES, 1), core.registers.compare_mask)


@operation("ascendc.set_cmp_mask")
def set_cmp_mask(core: Core, site: int, src: Tensor) -> None:
    """CMPMASK from the 128 bits at `src`."""
    if has_vector_unit(core):
        core.begin(site, V, SET_MASK, work=CMPMASK_BYTES)
        read_register(core, src)


# -- select ----------------------------------------------------------------------------------------------------------


def _check_select(core: Core, dst: Tensor, tensors: tuple[Tensor, ...], mask: Tensor | None, count_form: bool) -> None:
    """Raises UserError for element types that a selection does not take."""
    taken: tuple[np.dtype[Any], ...] = FLOATS
    if core.chip.arch == WIDE_ARCH:
        taken = (*FLOATS, I32, *WIDER, *(NARROW_AND_LONG if count_form else ()))
    if dst.dtype not in taken or any([tensor.dtype != dst.dtype for tensor in tensors]):
        types: Types = (dst.dtype, *[tensor.dtype for tensor in tensors])
        raise type_error(core, "select", types, [(dtype,) for dtype in taken])
    if mask is not None and mask.dtype not in (U8, U16, U32, U64):
        raise UserError(
            f"ascendc.select takes a mask of uint8_t, uint16_t, uint32_t or uint64_t, not {mask.dtype.name}"
        )


def _select(
    core: Core, site: int, dst: Tensor, mask: Tensor, src0: Tensor, src1: Any, mode: int, extent: Extent,
    strides: tuple[Strides, ...],
) -> None:
    """Selection by the bits at `mask`: the first repeat's for all repeats in mode 0, consecutive ones else.

    The library leaves in CMPMASK what the instruction takes from it: the bits, the scalar or the address of the bits.
    """
    lanes = lanes_per_repeat(dst.dtype.itemsize)
    begin_select(core, site, VSEL, extent, lanes)
    total = elements(extent, lanes)
    bits = selection_bits(core, mask, min(lanes, total) if mode == REGISTER_MODE else total)
    if mode == REGISTER_MODE:
        peek_register_from(core, mask)
    else:
        held = np.uint32(mask.address) if mode == TENSOR_MODE else np.asarray(src1)
        fill_register(core, np.asarray(held))
    select(core, bits, dst, src0, src1, extent, strides)


def _mode(name: str, mode: int, allowed: tuple[int, ...]) -> None:
    if mode not in allowed:
        raise UserError(f"ascendc.{name} takes selection mode {' or '.join(map(str, allowed))}, not {mode}")


@operation("ascendc.select_l2")
def select_l2(
    core: Core, site: int, dst: Tensor, mask: Tensor, src0: Tensor, src1: Tensor, count: int, *, sel_mode: int
) -> None:
    """Select between two tensors, `count` elements."""
    if has_vector_unit(core):
        _mode("select_l2", sel_mode, (REGISTER_MODE, TENSOR_MODE))
        _check_select(core, dst, (src0, src1), mask, True)
        _select_count(core, site, dst, mask, src0, src1, count, sel_mode)


@operation("ascendc.select_scalar_l2")
def select_scalar_l2(
    core: Core, site: int, dst: Tensor, mask: Tensor, src0: Tensor, src1: Any, count: int, *, sel_mode: int
) -> None:
    """Select between a tensor and a scalar, `count` elements."""
    if has_vector_unit(core):
        _mode("select_scalar_l2", sel_mode, (SCALAR_MODE,))
        _check_select(core, dst, (src0,), mask, True)
        _select_count(core, site, dst, mask, src0, as_element(src1, dst.dtype), count, sel_mode)


def _select_count(
    core: Core, site: int, dst: Tensor, mask: Tensor, src0: Tensor, src1: Any, count: int, mode: int
) -> None:
    extent = count_extent(core, count)
    _select(core, site, dst, mask, src0, src1, mode, extent, (DENSE, DENSE, DENSE))
    if count < 0:
        core.fault("bad_operand", what="the element count", value=count, limit="0 or more")


@operation("ascendc.select_l0")
def select_l0(
    core: Core, site: int, dst: Tensor, sel_mask: Tensor, src0: Tensor, src1: Tensor, mask: int, repeat: int,
    params: Record, *, sel_mode: int, is_set_mask: bool = False,
) -> None:
    """Select between two tensors, repeats."""
    _mode("select_l0", sel_mode, (REGISTER_MODE, TENSOR_MODE))
    _select_strided(core, site, dst, sel_mask, src0, src1, mask if is_set_mask else None, repeat, params, sel_mode)


@operation("ascendc.select_l1", variadic=("mask",))
def select_l1(
    core: Core, site: int, dst: Tensor, sel_mask: Tensor, src0: Tensor, src1: Tensor, mask: list[int], repeat: int,
    params: Record, *, sel_mode: int, is_set_mask: bool = False,
) -> None:
    """Select between two tensors, repeats, mask bits."""
    _mode("select_l1", sel_mode, (REGISTER_MODE, TENSOR_MODE))
    _select_strided(core, site, dst, sel_mask, src0, src1, mask if is_set_mask else None, repeat, params, sel_mode)


@operation("ascendc.select_scalar_l0")
def select_scalar_l0(
    core: Core, site: int, dst: Tensor, sel_mask: Tensor, src0: Tensor, src1: Any, mask: int, repeat: int,
    params: Record, *, sel_mode: int, is_set_mask: bool = False,
) -> None:
    """Select between a tensor and a scalar, repeats."""
    _mode("select_scalar_l0", sel_mode, (SCALAR_MODE,))
    _select_strided(core, site, dst, sel_mask, src0, src1, mask if is_set_mask else None, repeat, params, sel_mode)


@operation("ascendc.select_scalar_l1", variadic=("mask",))
def select_scalar_l1(
    core: Core, site: int, dst: Tensor, sel_mask: Tensor, src0: Tensor, src1: Any, mask: list[int], repeat: int,
    params: Record, *, sel_mode: int, is_set_mask: bool = False,
) -> None:
    """Select between a tensor and a scalar, repeats, mask bits."""
    _mode("select_scalar_l1", sel_mode, (SCALAR_MODE,))
    _select_strided(core, site, dst, sel_mask, src0, src1, mask if is_set_mask else None, repeat, params, sel_mode)


def _select_strided(
    core: Core, site: int, dst: Tensor, sel_mask: Tensor, src0: Tensor, src1: Any, mask: int | list[int] | None,
    repeat: int, params: Record, mode: int,
) -> None:
    if not has_vector_unit(core):
        return
    if mode == SCALAR_MODE:
        _check_select(core, dst, (src0,), sel_mask, False)
        src1 = as_element(src1, dst.dtype)
    else:
        _check_select(core, dst, (src0, src1), sel_mask, False)
    if mask is not None:
        set_mask(core, mask, dst.dtype.itemsize)
    extent = current_extent(core, repeat_times(repeat))
    _select(core, site, dst, sel_mask, src0, src1, mode, extent, binary_strides(params))
    check_repeat(core, repeat)
    if mask is not None:
        check_mask(core, mask, dst.dtype.itemsize)


@operation("ascendc.select_reg")
def select_reg(
    core: Core, site: int, dst: Tensor, src0: Tensor, src1: Tensor, repeat: int, params: Record, *, sel_mode: int
) -> None:
    """Select under the mask registers; CMPMASK holds the bits (mode 0) or their address in UB (mode 2)."""
    if not has_vector_unit(core):
        return
    _mode("select_reg", sel_mode, (REGISTER_MODE, TENSOR_MODE))
    _check_select(core, dst, (src0, src1), None, False)
    lanes = lanes_per_repeat(dst.dtype.itemsize)
    extent = current_extent(core, repeat_times(repeat))
    begin_select(core, site, VSEL, extent, lanes)
    if sel_mode == REGISTER_MODE:
        bits = register_bits(core, lanes)
    else:
        total = elements(extent, lanes)
        bits = selection_bits(core, tensor_at_register(core, site, -(-total // 8)), total)
    select(core, bits, dst, src0, src1, extent, binary_strides(params))
    check_repeat(core, repeat)


@operation("ascendc.select_scalar_reg")
def select_scalar_reg(
    core: Core, site: int, dst: Tensor, sel_mask: Tensor, src0: Tensor, repeat: int, params: Record
) -> None:
    """Select under the mask registers between a tensor and the scalar that CMPMASK holds."""
    if not has_vector_unit(core):
        return
    _check_select(core, dst, (src0,), sel_mask, False)
    dtype = dst.dtype
    lanes = lanes_per_repeat(dtype.itemsize)
    extent = current_extent(core, repeat_times(repeat))
    begin_select(core, site, VSEL, extent, lanes)
    bits = selection_bits(core, sel_mask, elements(extent, lanes))
    scalar = core.registers.compare_mask[: dtype.itemsize].copy().view(dtype)[0]
    select(core, bits, dst, src0, scalar, extent, binary_strides(params))
    check_repeat(core, repeat)
