"""Fractals: 16 rows of 32 bytes (512 bytes), and the moves between row-major matrices and columns of fractals.

Nz is the layout of L1: columns of 32 bytes one after the other, each with its rows one after the other; a column of 16
rows is a fractal (hardware.md 2.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.npu.core import Core
from npuscope.npu.isa.move import WORD_LIMIT, begin_move, bounded, deliver, move
from npuscope.npu.layout import BLOCK, strided
from npuscope.npu.numbers.dtypes import INT4
from npuscope.npu.tensor import Tensor, shifted

FRACTAL = 512
"""Bytes of a fractal."""
ROWS = 16
"""Rows of a fractal, and columns of one in L0C."""
BYTE = np.dtype(np.uint8)


def columns_of(dtype: np.dtype[Any]) -> int:
    """Elements of `dtype` in a row of a fractal: 8, 16, 32, and 64 for int4 (hardware.md 2.4)."""
    return 2 * BLOCK if dtype == INT4 else BLOCK // dtype.itemsize


def as_stored(tensor: Tensor) -> Tensor:
    """The tensor in elements that fill bytes: int4 lies in memory two to a byte."""
    return tensor.cast(BYTE) if tensor.dtype == INT4 else tensor


@dataclass(frozen=True, slots=True)
class NdToNz:
    """`count` matrices of `rows` x `width` elements (Nd2NzParams, hardware.md 2.2). Source strides in elements;
    `column_step` and `row_step` in 32-byte blocks, `step` between target matrices in elements."""

    count: int
    rows: int
    width: int
    source_step: int
    source_row: int
    column_step: int
    row_step: int
    step: int


def nd_to_nz(core: Core, site: int, destination: Tensor, source: Tensor, shape: NdToNz) -> None:
    """Row-major matrices to columns of 32 bytes; a row's last 32 bytes are filled up with zeros (vendor's ND2NZ page).

    A count, rows or width of 0 is no operation.
    """
    size = source.dtype.itemsize
    begin_move(core, site, source, destination, shape.count * shape.rows * shape.width * size, shape.rows, shape.width)
    count = bounded(core, "number of ND matrices", shape.count, 4095)
    rows = bounded(core, "rows of the ND matrix", shape.rows, 16384)
    width = bounded(core, "columns of the ND matrix", shape.width, WORD_LIMIT)
    if count == 0 or rows == 0 or width == 0:
        return
    bounded(core, "row pitch of the ND matrix", shape.source_row, WORD_LIMIT, 1)
    bounded(core, "column pitch of the NZ matrix", shape.column_step, 16384, 1)
    bounded(core, "row pitch of the NZ matrix", shape.row_step, 16384, 1)
    lanes = BLOCK // size
    columns = -(-width // lanes)
    read = strided((count, rows, width), (shape.source_step * size, shape.source_row * size, size), size)
    values = core.load(source, read)
    if width % lanes:
        filled = np.zeros((count, rows, columns * lanes), destination.dtype)
        filled[:, :, :width] = values.view(destination.dtype)
        values = filled
    write = strided(
        (count, columns, rows, lanes),
        (shape.step * size, shape.column_step * BLOCK, shape.row_step * BLOCK, size),
        size,
    )
    core.store(destination, write, values.reshape(count, rows, columns, lanes).transpose(0, 2, 1, 3))


@dataclass(frozen=True, slots=True)
class NzToNd:
    """`count` matrices of `rows` x `width` elements (Nz2NdParamsFull). `source_step` in units of 256 elements,
    `column_step` in units of 16; `row_step` and `step` in elements."""

    count: int
    rows: int
    width: int
    source_step: int
    column_step: int
    row_step: int
    step: int


def nz_to_nd(core: Core, site: int, destination: Tensor, source: Tensor, shape: NzToNd) -> None:
    """Columns of 16 elements, whatever their type, to row-major matrices in GM (vendor's NZ2ND page, UB to GM)."""
    size = source.dtype.itemsize
    begin_move(core, site, source, destination, shape.count * shape.rows * shape.width * size, shape.rows, shape.width)
    count = bounded(core, "number of NZ matrices", shape.count, 4095)
    rows = bounded(core, "rows of the NZ matrix", shape.rows, 8192)
    width = bounded(core, "columns of the NZ matrix", shape.width, 8192)
    if count == 0 or rows == 0 or width == 0:
        return
    if width % ROWS:
        core.fault("bad_operand", what="columns of the NZ matrix", value=width, limit=f"a multiple of {ROWS}")
    column = shape.column_step * ROWS * size
    for first, columns, lanes in parts(width, ROWS):
        outer = (count, columns, rows, lanes)
        read = strided(outer, (shape.source_step * ROWS * ROWS * size, column, ROWS * size, size), size)
        write = strided(outer, (shape.step * size, ROWS * size, shape.row_step * size, size), size)
        move(core, shifted(destination, first * ROWS * size), write, shifted(source, first * column), read)


def parts(extent: int, lanes: int) -> list[tuple[int, int, int]]:
    """(first column, columns, elements of a column) of the whole columns of `extent` elements and of a shorter last
    one."""
    whole, rest = divmod(extent, lanes)
    found = [(0, whole, lanes)] if whole else []
    if rest:
        found.append((whole, 1, rest))
    return found


# -- slices (DataCopy with SliceInfo) --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slice:
    """One side of a sliced copy in elements: `start` of the first run, and (count, stride) of every loop over runs,
    outermost first."""

    start: int
    loops: tuple[tuple[int, int], ...]


def copy_slices(
    core: Core, site: int, destination: Tensor, source: Tensor, target: Slice, origin: Slice, run: int
) -> None:
    """Copy runs of `run` elements from the places of `origin` to those of `target`, which are as many, in order."""
    size = source.dtype.itemsize
    number = int(np.prod([count for count, _ in origin.loops], dtype=np.int64))
    begin_move(core, site, source, destination, number * run * size, number, run * size)
    if number == 0 or run == 0:
        return
    if len(origin.loops) <= 3 and len(target.loops) <= 3:
        values = core.load(source.at(origin.start), _slice_layout(origin, run, size))
        write = _slice_layout(target, run, size)
        deliver(core, destination.at(target.start), write, values.reshape(write.shape))
        return
    values = core.gather(source, _slice_starts(origin, run) * size)
    if core.registers.atomic_operation is not None:
        core.fault("bad_operand", what="dimensions of a sliced copy in atomic mode", value=len(target.loops), limit="3")
    core.scatter(destination, _slice_starts(target, run) * size, values)


def _slice_layout(side: Slice, run: int, size: int) -> Any:
    shape = (*(count for count, _ in side.loops), run)
    return strided(shape, (*(stride * size for _, stride in side.loops), size), size)


def _slice_starts(side: Slice, run: int) -> np.ndarray:
    starts = np.full(1, side.start, np.int64)
    for count, stride in (*side.loops, (run, 1)):
        starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return starts
