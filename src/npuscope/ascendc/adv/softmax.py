"""SoftMax and SimpleSoftMax over the rows of a matrix (the vendor's SoftMax pages)."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.composed import begin_composed, computes_here, note_reused, rounded
from npuscope.ascendc.adv.shapes import Matrix, matrix_of
from npuscope.ascendc.operand_types import wrong_types
from npuscope.ascendc.params import FIELDS
from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.layout import BLOCK, Layout, contiguous, strided
from npuscope.npu.numbers.dtypes import F16, F32
from npuscope.npu.tensor import Tensor

SOFTMAX, SIMPLE_SOFTMAX = opcode("softmax"), opcode("simple_softmax")
NZ_WIDTH = 16
"""Columns of a block in the NZ format of SoftMax, for half and for float."""

TILING = (
    "srcM srcK srcSize outMaxM outMaxK outMaxSize splitM splitK splitSize reduceM reduceK reduceSize rangeM tailM "
    "tailSplitSize tailReduceSize"
)
FIELDS.update(
    {
        "softmax_tiling": dict.fromkeys(TILING.split(), 0),
        "softmax_shape_info": {"src_m": 0, "src_k": 0, "ori_src_m": 0, "ori_src_k": 0},
    }
)


def shape_of(src: Tensor, tiling: Any, info: Any) -> Matrix:
    """From the call's shape info, the source's, or the tiling, in that order; UserError when none has one."""
    if info is not None and info.src_m and info.src_k:
        return Matrix(info.src_m, info.src_k, info.ori_src_k or info.src_k)
    found = matrix_of(src)
    if found is None and tiling.srcM and tiling.srcK:
        found = Matrix(tiling.srcM, tiling.srcK, tiling.srcK)
    if found is None:
        raise UserError("softmax does not know its rows; give the source a shape with set_shape_info")
    return found


def _matrix(shape: Matrix, itemsize: int, nz: bool) -> Layout:
    """The matrix in a tensor: ND contiguous, or NZ as (blocks, rows, 16)."""
    if not nz:
        return contiguous(shape.rows * shape.columns, itemsize)
    blocks = -(-shape.columns // NZ_WIDTH)
    width = NZ_WIDTH * itemsize
    return strided((blocks, shape.rows, NZ_WIDTH), (shape.rows * width, width, itemsize), itemsize)


def _to_rows(values: np.ndarray, shape: Matrix, nz: bool) -> np.ndarray:
    if nz:
        return values.transpose(1, 0, 2).reshape(shape.rows, -1)
    return values.reshape(shape.rows, shape.columns)


def _from_rows(rows: np.ndarray, nz: bool) -> np.ndarray:
    if nz:
        return rows.reshape(rows.shape[0], -1, NZ_WIDTH).transpose(1, 0, 2)
    return rows.reshape(-1)


def _check(core: Core, site: int, name: str, dst: Tensor, total: Tensor, largest: Tensor, src: Tensor) -> None:
    kinds = (src.dtype, total.dtype)
    same = dst.dtype == src.dtype and largest.dtype == total.dtype
    if not same or kinds not in ((F16, F16), (F32, F32), (F16, F32)):
        raise wrong_types(core, site, name, "half, float, or half with sum and max in float", dst, total, largest, src)


def _row_blocks(tensor: Tensor, rows: int) -> Layout:
    """One block of 32 bytes for each row."""
    return contiguous(rows * (BLOCK // tensor.dtype.itemsize), tensor.dtype.itemsize)


def _finish(
    core: Core, dst: Tensor, layout: Layout, result: np.ndarray, source: np.ndarray, columns: int, nz: bool
) -> None:
    """Store the rows; in NZ the padding columns keep the source's values, in ND they went through the formula too."""
    if nz:
        result[:, columns:] = source[:, columns:]
    core.store(dst, layout, _from_rows(rounded(core, result, dst.dtype), nz))


@operation("ascendc.softmax")
def softmax(
    core: Core, site: int, dst: Tensor, total: Tensor, largest: Tensor, src: Tensor, temporary: Tensor | None,
    tiling: Any, info: Any, *, reuse_source: Any = False, basic_block: Any = False, data_format_nz: Any = False,
) -> None:  # fmt: skip
    """exp(x - max) / sum for each row, in float32, rounded once; sum and max fill one 32-byte block a row.

    Rows are those of the source's shape info: the last axis is the reduced one. Padding columns (the call's shape info)
    take no part in maximum and sum. `basic_block` promises a shape that the device computes faster.
    """
    if not computes_here(core):
        return
    _check(core, site, "softmax", dst, total, largest, src)
    shape = shape_of(src, tiling, info)
    nz = bool(data_format_nz)
    begin_composed(core, site, SOFTMAX, shape.rows * shape.columns, temporary)
    layout = _matrix(shape, src.dtype.itemsize, nz)
    source = _to_rows(core.load(src, layout), shape, nz).astype(F32)
    note_reused(core, src, layout, reuse_source)
    maxima = source[:, : shape.original].max(axis=1, keepdims=True) if source.size else source[:, :1]
    powers = np.exp(source - maxima)
    sums = powers[:, : shape.original].sum(axis=1, keepdims=True, dtype=F32)
    for tensor, column in ((total, sums), (largest, maxima)):
        blocks = _row_blocks(tensor, shape.rows)
        core.store(tensor, blocks, np.repeat(rounded(core, column, tensor.dtype), BLOCK // tensor.dtype.itemsize))
    _finish(core, dst, layout, powers / sums, source, shape.original, nz)
    if basic_block:
        _check_basic_block(core, shape, src)


@operation("ascendc.simple_softmax")
def simple_softmax(
    core: Core, site: int, dst: Tensor, total: Tensor, largest: Tensor, src: Tensor, temporary: Tensor | None,
    tiling: Any, info: Any, *, reuse_source: Any = False, basic_block: Any = False, data_format_nz: Any = False,
) -> None:  # fmt: skip
    """exp(x - max) / sum with sums and maxima that are given, a 32-byte block a row."""
    if not computes_here(core):
        return
    _check(core, site, "simple_softmax", dst, total, largest, src)
    shape = shape_of(src, tiling, info)
    nz = bool(data_format_nz)
    begin_composed(core, site, SIMPLE_SOFTMAX, shape.rows * shape.columns, temporary)
    layout = _matrix(shape, src.dtype.itemsize, nz)
    source = _to_rows(core.load(src, layout), shape, nz).astype(F32)
    note_reused(core, src, layout, reuse_source)
    sums, maxima = (
        core.load(tensor, _row_blocks(tensor, shape.rows)).reshape(shape.rows, -1)[:, :1].astype(F32)
        for tensor in (total, largest)
    )
    _finish(core, dst, layout, np.exp(source - maxima) / sums, source, shape.original, nz)
    if basic_block:
        _check_basic_block(core, shape, src)


def _check_basic_block(core: Core, shape: Matrix, src: Tensor) -> None:
    """basicBlock holds for m a multiple of 8 and n a multiple of 64 from 256 bytes to below 2048 elements."""
    least = 256 // src.dtype.itemsize
    if shape.rows % 8 or shape.columns % 64 or not least <= shape.columns < 2048:
        core.fault(
            "bad_operand", what="the shape of a softmax with basic_block", value=(shape.rows, shape.columns),
            limit=f"rows a multiple of 8, columns a multiple of 64 from {least} to below 2048",
        )  # fmt: skip
