"""Fixpipe: results out of L0C with quantisation, ReLU and a change of layout on the way (hardware.md 5).

L0C holds columns of 16 elements, each with its rows of 64 bytes one after the other. The order of the steps is
quantisation, ReLU, layout, store; the arithmetic is that of `npuscope.npu.numbers.quantisation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.errors import UserError
from npuscope.npu.core import WRITE, Core, opcode
from npuscope.npu.isa.atomic import accumulate
from npuscope.npu.isa.fractal import ROWS, parts
from npuscope.npu.isa.move import COUNT_LIMIT, WORD_LIMIT, begin_move, bounded, move, route
from npuscope.npu.layout import BLOCK, Layout, contiguous, strided
from npuscope.npu.numbers import (
    dequantise_f16,
    dtype_of,
    narrow_f32,
    quantise_f32_to_b8,
    requantise,
    type_name,
)
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Space

FIXPIPE = opcode("fixpipe")
PRE_QUANT = "fixpipe_pre_quant"
"""Register: the quantisation word of the scalar modes (SetFixpipePreQuantFlag)."""

NO_QUANT, F32_F16, F32_BF16, DEQ_F16, VDEQ_F16, QF32_B8, VQF32_B8, REQ8, VREQ8 = range(9)
"""QuantMode_t in Ascend C's numbering."""
VECTOR_MODES = frozenset({VDEQ_F16, VQF32_B8, VREQ8})
"""Modes with a quantisation word a column."""

_B8 = frozenset({dtype_of("int8_t"), dtype_of("uint8_t")})
_TYPES: dict[int, tuple[str, frozenset[Any]]] = {
    F32_F16: ("float", frozenset({dtype_of("half")})),
    F32_BF16: ("float", frozenset({dtype_of("bfloat16_t")})),
    DEQ_F16: ("int32_t", frozenset({dtype_of("half")})),
    VDEQ_F16: ("int32_t", frozenset({dtype_of("half")})),
    QF32_B8: ("float", _B8),
    VQF32_B8: ("float", _B8),
    REQ8: ("int32_t", _B8),
    VREQ8: ("int32_t", _B8),
}
"""Mode -> L0C type, destination types (vendor's Fixpipe page, L0C to GM)."""

ROW = ROWS * 4
"""Bytes of a row of a column of 32-bit elements in L0C, the unit of the source stride."""


@dataclass(frozen=True, slots=True)
class Output:
    """What to move: `columns` x `rows` elements of each of `matrices` (FixpipeParamsV220, DataCopyCO12DstParams).

    `source_stride` between columns in rows of L0C (16 elements). `stride`: elements between rows of a row-major
    destination, else 32-byte blocks between its columns. Between matrices `source_step` counts fractals of 256
    elements and `step` elements. `word` is the quantisation word of a scalar mode, `words` the tensor of those of a
    vector mode (FB, one a column; None: the start of FB).
    """

    columns: int
    rows: int
    source_stride: int
    stride: int
    quant: int = NO_QUANT
    word: int = 0
    words: Tensor | None = None
    relu: bool = False
    row_major: bool = True
    channel_split: bool = False
    matrices: int = 1
    source_step: int = 0
    step: int = 0
    unit_flag: int = 0


def write_out(core: Core, site: int, destination: Tensor, source: Tensor, output: Output) -> None:
    """One Fixpipe instruction; the pipe follows from the destination, the atomic mode holds for GM.

    Raises UserError for element types that the mode does not take. Nothing is moved when a size is 0.
    """
    _check_types(core, destination, source, output)
    _begin(core, site, destination, source, output)
    columns, rows, matrices = _sizes(core, destination, output)
    if not (columns and rows and matrices):
        return
    if not output.row_major:
        lanes = ROWS // 2 if output.channel_split else ROWS
        columns, matrices = -(-columns // lanes) * lanes, 1
    words = _words(core, site, output, columns)
    store = _rows_out if output.row_major else _columns_out
    plain = core.registers.atomic_operation is None or destination.memory.space != Space.GM
    if plain and output.row_major:
        size = destination.dtype.itemsize
        shape = strided((matrices, rows, columns), (output.step * size, output.stride * size, size), size)
        core.note(WRITE, destination, shape)
    for first, count, lanes in parts(columns, ROWS):
        shape = strided(
            (matrices, count, rows, lanes), (output.source_step * ROWS * ROW, output.source_stride * ROW, ROW, 4), 4
        )
        values = core.load(shifted(source, first * output.source_stride * ROW), shape)
        narrow = None if words is None else words[first * ROWS : first * ROWS + count * lanes].reshape(count, 1, lanes)
        store(core, destination, output, first, _converted(core, values, output, narrow, destination), plain)


def _check_types(core: Core, destination: Tensor, source: Tensor, output: Output) -> None:
    if output.quant == NO_QUANT:
        good = source.dtype == destination.dtype and type_name(source.dtype) in ("float", "int32_t")
        if core.chip.arch == "2201" and destination.memory.space == Space.L1:
            good = False
    else:
        rule = _TYPES.get(output.quant)
        if rule is None:
            raise UserError(f"Fixpipe has no quantisation mode number {output.quant}")
        good = type_name(source.dtype) == rule[0] and destination.dtype in rule[1]
    if not good:
        raise UserError(
            f"Fixpipe in quantisation mode {output.quant} cannot move {type_name(source.dtype)} to "
            f"{type_name(destination.dtype)} in {destination.memory.space.name} on {core.chip.name}"
        )


def _begin(core: Core, site: int, destination: Tensor, source: Tensor, output: Output) -> None:
    pipe, _ = route(core, source.memory.space, destination.memory.space)
    nbytes = output.columns * output.rows * output.matrices * destination.dtype.itemsize
    core.begin(site, pipe, FIXPIPE, output.rows, output.columns, output.quant, output.unit_flag, work=nbytes)


def _sizes(core: Core, destination: Tensor, output: Output) -> tuple[int, int, int]:
    """Columns, rows and matrices within the limits of hardware.md 2.2 and sanitizer.md 5.2; what breaks them is
    noted."""
    columns = bounded(core, "columns of Fixpipe", output.columns, COUNT_LIMIT)
    high = 8192 if output.row_major and core.chip.arch == "2201" else WORD_LIMIT
    rows = bounded(core, "rows of Fixpipe", output.rows, high)
    matrices = bounded(core, "matrices of Fixpipe", output.matrices, WORD_LIMIT)
    lanes = ROWS // 2 if output.channel_split else ROWS
    if not output.row_major and columns % lanes:
        core.fault("bad_operand", what="columns of Fixpipe", value=columns, limit=f"a multiple of {lanes} in NZ layout")
    if output.source_stride % ROWS:
        core.fault(
            "bad_operand", what="source stride of Fixpipe", value=output.source_stride, limit=f"a multiple of {ROWS}"
        )
    bounded(core, "source stride of Fixpipe", output.source_stride, WORD_LIMIT)
    if output.stride == 0 and columns and rows:
        core.fault("bad_operand", what="destination stride of Fixpipe", value=0, limit="a stride that is not 0")
    if output.channel_split and (
        output.row_major
        or destination.memory.space != Space.GM
        or type_name(destination.dtype) != "float"
        or output.unit_flag
    ):
        core.fault(
            "bad_operand", what="channel split of Fixpipe", value="on",
            limit="float to GM in NZ layout without unit flag only",
        )
    return columns, rows, matrices


def _words(core: Core, site: int, output: Output, columns: int) -> np.ndarray | None:
    """The quantisation words of a vector mode, one a column; None for the other modes."""
    if output.quant not in VECTOR_MODES:
        return None
    tensor = output.words
    if tensor is None:
        nbytes = columns * 8
        number = core.raw_tensor(Space.FB, 0, nbytes, site, "", "uint64")
        tensor = Tensor(core.memories[Space.FB], 0, np.dtype(np.uint64), number, columns)
    return core.load(tensor, contiguous(columns, 8))


_QUANTISE: dict[int, Callable[..., np.ndarray]] = {
    DEQ_F16: dequantise_f16, VDEQ_F16: dequantise_f16, QF32_B8: quantise_f32_to_b8, VQF32_B8: quantise_f32_to_b8,
    REQ8: requantise, VREQ8: requantise,
}


def _converted(
    core: Core, values: np.ndarray, output: Output, words: np.ndarray | None, destination: Tensor
) -> np.ndarray:
    """Accumulators as the destination's elements: quantised, then ReLU."""
    mode, relu = output.quant, output.relu
    if mode == NO_QUANT:
        return np.where(values < 0, values.dtype.type(0), values) if relu else values
    saturate = core.registers.saturate
    if mode in (F32_F16, F32_BF16):
        return narrow_f32(values, destination.dtype, relu, saturate=saturate)
    word = np.uint64(output.word % (1 << 64)) if words is None else words
    shifts = core.chip.arch != "3510"
    if mode in (DEQ_F16, VDEQ_F16):
        return dequantise_f16(values, word, relu, saturate=saturate, shifts=shifts)
    if mode in (REQ8, VREQ8):
        return requantise(values, word, relu, shifts=shifts).view(destination.dtype)
    return quantise_f32_to_b8(values, word, relu).view(destination.dtype)


def _put(core: Core, destination: Tensor, shape: Layout, values: np.ndarray, plain: bool, noted: bool) -> None:
    if not plain:
        accumulate(core, destination, shape, values)
    elif noted:
        core.put(destination, shape, values)
    else:
        core.store(destination, shape, values)


def _rows_out(
    core: Core, destination: Tensor, output: Output, first: int, values: np.ndarray, plain: bool
) -> None:
    """Row-major (NZ2ND): `values` (matrices, columns of 16, rows, lanes) from column `first` on."""
    size = destination.dtype.itemsize
    shape = strided(values.shape, (output.step * size, ROWS * size, output.stride * size, size), size)
    _put(core, shifted(destination, first * ROWS * size), shape, values, plain, noted=True)


def _columns_out(
    core: Core, destination: Tensor, output: Output, first: int, values: np.ndarray, plain: bool
) -> None:
    """Columns (NZ2NZ): 32 bytes wide for 8-bit elements (two columns merge, an odd last one stays 16 wide) and for
    float with channel split (a column becomes two), else 16 elements wide (vendor's NZ2NZ page and those it names)."""
    size = destination.dtype.itemsize
    pitch = output.stride * BLOCK
    values = values[0]
    count, rows, lanes = values.shape
    target = shifted(destination, first * pitch * (2 if output.channel_split else 1))
    if output.channel_split:
        halves = lanes // (ROWS // 2)
        shape = strided((count, halves, rows, ROWS // 2), (2 * pitch, pitch, BLOCK, size), size)
        parted = values.reshape(count, rows, halves, ROWS // 2).transpose(0, 2, 1, 3)
        _put(core, target, shape, parted, plain, noted=False)
        return
    if size != 1:
        shape = strided((count, rows, lanes), (pitch, ROWS * size, size), size)
        _put(core, target, shape, values, plain, noted=False)
        return
    pairs = count // 2
    if pairs:
        shape = strided((pairs, rows, 2, ROWS), (pitch, BLOCK, ROWS, 1), 1)
        merged = values[: 2 * pairs].reshape(pairs, 2, rows, ROWS).transpose(0, 2, 1, 3)
        _put(core, target, shape, merged, plain, noted=False)
    if count % 2:
        shape = strided((rows, ROWS), (ROWS, 1), 1)
        _put(core, shifted(target, pairs * pitch), shape, values[-1], plain, noted=False)


def copy_fractals(
    core: Core, site: int, destination: Tensor, source: Tensor, count: int, length: int, source_gap: int, gap: int,
    relu: bool,
) -> None:
    """L0C to UB of a coupled chip in runs of 16 x 16 fractals (DataCopyEnhancedParams, BLOCK_MODE_MATRIX): source gaps
    in fractals, destination gaps in 32 bytes; float may become half (vendor's DataCopy page, L0C to UB).

    Raises UserError for other types.
    """
    given = type_name(source.dtype), type_name(destination.dtype)
    same = given[0] == given[1] and given[0] in ("half", "float", "int32_t", "uint32_t")
    if not same and given != ("float", "half"):
        raise UserError(f"DataCopy from L0C to UB cannot move {given[0]} to {given[1]}")
    size, out_size = source.dtype.itemsize, destination.dtype.itemsize
    elements = length * ROWS * ROWS
    begin_move(core, site, source, destination, count * elements * out_size, count, length)
    count = bounded(core, "block count", count, COUNT_LIMIT)
    if count == 0 or length == 0:
        return
    run, out_run = elements * size, elements * out_size
    read = strided((count, elements), (run + source_gap * ROWS * ROWS * size, size), size)
    write = strided((count, elements), (out_run + gap * BLOCK, out_size), out_size)
    if given[0] == given[1] and not relu:
        move(core, destination, write, source, read)
        return
    values = core.load(source, read)
    if given[0] != given[1]:
        values = narrow_f32(values, destination.dtype, relu, saturate=core.registers.saturate)
    elif relu:
        values = np.where(values < 0, values.dtype.type(0), values)
    core.store(destination, write, values)

