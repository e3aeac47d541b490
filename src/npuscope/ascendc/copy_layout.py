"""DataCopy with a change of layout on the way: ND to NZ, NZ to ND, and out of L0C."""

from __future__ import annotations

from npuscope.ascendc.operand_types import Types, check_types, types_of
from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.npu.core import Core
from npuscope.npu.isa.fixpipe import PRE_QUANT, Output, write_out
from npuscope.npu.isa.fractal import NdToNz, NzToNd, nd_to_nz, nz_to_nd
from npuscope.npu.isa.move import runs_here
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Space

FIELDS.update(
    {
        "data_copy_co12dst_params": {
            "n_size": 0, "m_size": 0, "dst_stride": 0, "src_stride": 0, "quant_pre": 0, "relu_pre": 0,
            "channel_split": False, "nz2nd_en": False,
        },
    }
)

_WORDS = "int16_t uint16_t half bfloat16_t int32_t uint32_t float"
NZ_TO_ND_TYPES: Types = {
    "": types_of(_WORDS),
    "2002": types_of("int16_t uint16_t half int32_t uint32_t float"),
    "3510": types_of(f"bool int8_t uint8_t {_WORDS} int64_t uint64_t double"),
}
"""Vendor's NZ2ND page, UB to GM."""


def _nd_to_nz(params: Record) -> NdToNz:
    return NdToNz(
        params.nd_num, params.n_value, params.d_value, params.src_nd_matrix_stride, params.src_d_value,
        params.dst_nz_c0_stride, params.dst_nz_n_stride, params.dst_nz_matrix_stride,
    )


@operation("ascendc.data_copy_nd2nz")
def data_copy_nd2nz(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """Row-major matrices into columns of 32 bytes (Nd2NzParams)."""
    if runs_here(core, destination, source):
        nd_to_nz(core, site, destination, source, _nd_to_nz(params))


@operation("ascendc.data_copy_pad_nd2nz", "ascendc.data_copy_pad_nd2nz_ext")
def data_copy_pad_nd2nz(
    core: Core, site: int, destination: Tensor, source: Tensor, params: Record, layout: Record
) -> None:
    """UB to L1 with ND to NZ: rows are taken as `params` (blocks of bytes, gaps of 32 bytes) lays them in UB, which is
    the row pitch of the matrix that `layout` describes (vendor's DataCopyPad page, UB to L1)."""
    if runs_here(core, destination, source):
        shape = _nd_to_nz(layout)
        pitch = (-(-params.block_len // 32) + params.src_stride) * 32 // source.dtype.itemsize
        nd_to_nz(
            core, site, destination, source,
            NdToNz(
                shape.count, shape.rows, shape.width, shape.source_step, pitch, shape.column_step, shape.row_step,
                shape.step,
            ),
        )


@operation("ascendc.data_copy_nz2nd")
def data_copy_nz2nd(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """Columns of 16 elements into row-major matrices (Nz2NdParamsFull)."""
    if runs_here(core, destination, source):
        check_types(core, site, "DataCopy NZ2ND", NZ_TO_ND_TYPES, destination, source)
        shape = NzToNd(
            params.nd_num, params.n_value, params.d_value, params.src_nd_matrix_stride, params.src_n_stride,
            params.dst_d_stride, params.dst_nd_matrix_stride,
        )
        nz_to_nd(core, site, destination, source, shape)


@operation("ascendc.data_copy_co12dst")
def data_copy_co12dst(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """L0C to GM or L1 (DataCopyCO12DstParams): Fixpipe with its registers set before, the quantisation word by
    SetFixpipePreQuantFlag, or for the vector modes the words at the start of FB."""
    if not runs_here(core, destination, source):
        return
    word = core.registers.values.get(PRE_QUANT, 0)
    output = Output(
        params.n_size, params.m_size, params.src_stride, params.dst_stride, int(params.quant_pre),
        word=int(word) if isinstance(word, int) else 0,
        relu=bool(params.relu_pre),
        row_major=bool(params.nz2nd_en) and destination.memory.space == Space.GM,
        channel_split=bool(params.channel_split),
    )
    write_out(core, site, destination, source, output)
