"""Transpose in its two forms, and TransDataTo5HD in its three."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.operand_types import Types, check_types, types_of
from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core
from npuscope.npu.isa import transpose as isa
from npuscope.npu.isa.lanes import has_vector_unit
from npuscope.npu.isa.vector import V
from npuscope.npu.layout import BLOCK, contiguous
from npuscope.npu.tensor import Tensor

_B16 = "int16_t uint16_t half"
_ALL = "int8_t uint8_t int32_t uint32_t float " + _B16
MATRIX: Types = {"": types_of(_B16)}
MATRIX_EXT: Types = {"": types_of("uint16_t"), "3510": types_of(_B16)}
CONVERTED: Types = {"": types_of(_ALL), "3510": types_of(_ALL + " bfloat16_t")}
"""Element types from the vendor's Transpose and TransDataTo5HD pages."""

FIELDS.update({
    "trans_data_to_5hd_params": {
        "dst_high_half": 0, "src_high_half": 0, "repeat_times": 1, "dst_rep_stride": 0, "src_rep_stride": 0,
    },
    "transpose_params_ext": {"n_size": 0, "c_size": 0, "h_size": 0, "w_size": 0, "transpose_type": 10},
})

NOTHING, ND2ND_B16, NCHW2NHWC, NHWC2NCHW = 0, 10, 11, 12
"""The TransposeTypes that the library acts on, and NONE; 1 to 9 are not supported (vendor's Transpose page)."""
MAX_CHANNELS = MAX_IMAGE = 4095
NO_TEMPORARY = frozenset({"2002"})
"""Architectures whose Transpose uses no temporary buffer."""


@operation("ascendc.transpose")
def transpose(core: Core, site: int, dst: Tensor, src: Tensor) -> None:
    """A 16 x 16 matrix of 16-bit elements; `dst` may be `src`."""
    if has_vector_unit(core):
        check_types(core, site, "transpose", MATRIX, dst, src)
        isa.transpose(core, site, dst, src)


@operation("ascendc.transpose_ext")
def transpose_ext(core: Core, site: int, dst: Tensor, src: Tensor, tmp: Tensor, params: Record) -> None:
    """A 16 x 16 matrix, or NCHW <-> NHWC of a dense tensor, by TransposeParamsExt."""
    if not has_vector_unit(core):
        return
    kind = params.transpose_type
    if kind in (NCHW2NHWC, NHWC2NCHW):
        check_types(core, site, "transpose", CONVERTED, dst, src)
        _transpose_4d(core, site, dst, src, tmp, params)
    elif kind == ND2ND_B16 and (params.h_size, params.w_size) == (isa.SIDE, isa.SIDE):
        check_types(core, site, "transpose", MATRIX_EXT, dst, src)
        isa.transpose(core, site, dst, src)
    else:
        core.begin(site, V, isa.TRANSPOSE_4D)  # the library does nothing
        if kind == ND2ND_B16:
            size = f"{params.h_size} x {params.w_size}"
            core.fault("bad_operand", what="the matrix of TRANSPOSE_ND2ND_B16", value=size, limit="16 x 16")
        elif kind != NOTHING:
            core.fault("bad_operand", what="transposeType", value=kind, limit="0, 10, 11 or 12")


def _transpose_4d(core: Core, site: int, dst: Tensor, src: Tensor, tmp: Tensor, params: Record) -> None:
    n, c, h, w = params.n_size, params.c_size, params.h_size, params.w_size
    itemsize = src.dtype.itemsize
    to_nhwc = params.transpose_type == NCHW2NHWC
    shape = (n, c, h, w) if to_nhwc else (n, h, w, c)
    axes = (0, 2, 3, 1) if to_nhwc else (0, 3, 1, 2)
    isa.transpose_4d(core, site, dst, src, tmp, shape, axes, _temporary_bytes(core, c, itemsize, to_nhwc))
    if c > MAX_CHANNELS:
        core.fault("bad_operand", what="cSize of Transpose", value=c, limit=f"0 to {MAX_CHANNELS}")
    if h * w > MAX_IMAGE:
        core.fault("bad_operand", what="hSize * wSize of Transpose", value=h * w, limit=f"0 to {MAX_IMAGE}")
    if h * w * itemsize % BLOCK:
        core.fault(
            "bad_operand", what="hSize * wSize of Transpose", value=f"{h * w * itemsize} bytes",
            limit=f"multiples of {BLOCK} bytes",
        )


def _temporary_bytes(core: Core, channels: int, itemsize: int, to_nhwc: bool) -> int:
    """Bytes of sharedTmpBuffer that the library uses, by the formulas of the vendor's Transpose page."""
    if core.chip.arch in NO_TEMPORARY or channels == 1:  # one channel is a plain copy
        return 0
    rows = 32 if itemsize == 1 else 16
    return (channels + 2 if to_nhwc else 2 * channels + 1) * rows * BLOCK


# -- 16 addresses --------------------------------------------------------------------------------------------------


def _conversion(params: Record) -> isa.Conversion:
    return isa.Conversion(
        bool(params.dst_high_half), bool(params.src_high_half), params.repeat_times, params.dst_rep_stride,
        params.src_rep_stride,
    )


@operation("ascendc.trans_data_to_5hd_tensor_list", variadic=("dst_list", "src_list"))
def trans_data_to_5hd_tensor_list(
    core: Core, site: int, dst_list: list[Tensor], src_list: list[Tensor], params: Record
) -> None:
    """16 destination and 16 source blocks as tensors."""
    if has_vector_unit(core):
        check_types(core, site, "trans_data_to_5hd", CONVERTED, *dst_list, *src_list)
        isa.convert_blocks(core, site, dst_list, src_list, _conversion(params))


@operation("ascendc.trans_data_to_5hd_uint_list", variadic=("dst_list", "src_list"))
def trans_data_to_5hd_uint_list(
    core: Core, site: int, dst_list: list[int], src_list: list[int], params: Record, *, address_dtype: Any
) -> None:
    """16 destination and 16 source blocks as UB addresses of elements of `address_dtype`."""
    if has_vector_unit(core):
        targets, sources = (isa.tensors_at(core, addresses, address_dtype) for addresses in (dst_list, src_list))
        check_types(core, site, "trans_data_to_5hd", CONVERTED, targets[0], sources[0])
        isa.convert_blocks(core, site, targets, sources, _conversion(params))


@operation("ascendc.trans_data_to_5hd")
def trans_data_to_5hd(
    core: Core, site: int, dst: Tensor, src: Tensor, params: Record, *, address_dtype: Any
) -> None:
    """16 destination and 16 source blocks whose UB addresses lie, as uint64, in two tensors."""
    if not has_vector_unit(core):
        return
    layout = contiguous(isa.SIDE, isa.ADDRESS_BYTES)
    targets, sources = (
        isa.tensors_at(core, [int(address) for address in core.view(addresses, layout)], address_dtype)
        for addresses in (dst, src)
    )
    check_types(core, site, "trans_data_to_5hd", CONVERTED, targets[0], sources[0])
    isa.convert_blocks(core, site, targets, sources, _conversion(params), (dst, src))
