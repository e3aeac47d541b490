"""LoadData: fractals of 512 bytes between GM, L1, L0A and L0B, with transposition (hardware.md 2.2, 2.4; vendor's
LoadData pages)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.cube import SPARSE_INDEX
from npuscope.npu.isa.fractal import BYTE, FRACTAL, ROWS, as_stored, columns_of
from npuscope.npu.isa.move import WORD_LIMIT, begin_move, bounded, route
from npuscope.npu.layout import BLOCK, contiguous, strided
from npuscope.npu.numbers import pack_int4, type_name, unpack_int4
from npuscope.npu.numbers.dtypes import INT4
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Space

LOAD, LOAD_TRANSPOSED = opcode("load_data"), opcode("load_data_transposed")
LOAD_SPARSE, FILL = opcode("load_data_sparse"), opcode("fill")
REPEAT_LIMIT = 255


@dataclass(frozen=True, slots=True)
class Fractals:
    """LoadData2DParams: `repeat` fractals from number `start` on, `stride` fractals from start to start in the source
    (backwards when `descending`), `gap` fractals between those of the destination."""

    start: int
    repeat: int
    stride: int
    gap: int
    transpose: bool = False
    descending: bool = False


def load_fractals(core: Core, site: int, destination: Tensor, source: Tensor, shape: Fractals) -> None:
    """LoadData (2D): GM to L1, L0A, L0B, or L1 to L0A, L0B. A repeat of 0 is no operation.

    Only L1 to L0 transposes, and only fractals of 16-bit elements: UserError for others. Only GM to L1 can go
    backwards.
    """
    if shape.transpose and source.dtype.itemsize != 2:
        raise UserError(f"LoadData transposes fractals of 16-bit elements, not of {type_name(source.dtype)}")
    begin_move(core, site, source, destination, shape.repeat * FRACTAL, shape.repeat, shape.stride)
    start = bounded(core, "start index of LoadData", shape.start, WORD_LIMIT)
    repeat = bounded(core, "repeat of LoadData", shape.repeat, REPEAT_LIMIT)
    stride = bounded(core, "source stride of LoadData", shape.stride, WORD_LIMIT)
    gap = bounded(core, "destination gap of LoadData", shape.gap, WORD_LIMIT)
    transpose, descending = shape.transpose, shape.descending
    if transpose and source.memory.space == Space.GM:
        core.fault("bad_operand", what="transposition of LoadData", value="on", limit="off on the way from GM")
        transpose = False
    if descending and (source.memory.space, destination.memory.space) != (Space.GM, Space.L1):
        core.fault("bad_operand", what="address mode of LoadData", value=1, limit="0 except from GM to L1")
        descending = False
    if repeat == 0:
        return
    if descending and start < stride * (repeat - 1):
        core.fault(
            "bad_operand", what="the last source index of LoadData", value=start - stride * (repeat - 1),
            limit="0 and more",
        )
    source, destination = as_stored(source), as_stored(destination)
    size = source.dtype.itemsize
    elements = FRACTAL // size
    step = -stride * FRACTAL if descending else stride * FRACTAL
    values = core.load(shifted(source, start * FRACTAL), strided((repeat, elements), (step, size), size))
    if transpose:
        values = values.reshape(repeat, ROWS, ROWS).transpose(0, 2, 1).reshape(repeat, elements)
    write = strided((repeat, elements), ((gap + 1) * FRACTAL, size), size)
    core.store(destination, write, values.view(destination.dtype))


@dataclass(frozen=True, slots=True)
class Steps:
    """LoadData2DParamsV2: a rectangle of `rows` x `columns` fractals of an Nz matrix from fractal (row, column) on,
    with `stride` fractals between the source's columns and `gap` between the destination's, start to start."""

    row: int
    column: int
    rows: int
    columns: int
    stride: int
    step: int
    transpose: bool = False


def load_steps(core: Core, site: int, destination: Tensor, source: Tensor, shape: Steps) -> None:
    """LoadData (2D, second form): GM to L1, or L1 to L0A, L0B. Zero rows or columns are no operation.

    With transposition the rectangle's elements are transposed as a matrix and cut into fractals anew; what is no whole
    number of fractals then (sanitizer.md 5.2) is a fault and left out.
    """
    begin_move(core, site, source, destination, shape.rows * shape.columns * FRACTAL, shape.rows, shape.columns)
    rows = bounded(core, "rows (mStep) of LoadData", shape.rows, REPEAT_LIMIT)
    columns = bounded(core, "columns (kStep) of LoadData", shape.columns, REPEAT_LIMIT)
    lanes = columns_of(source.dtype)
    if shape.transpose:
        rows = _multiple(core, "rows (mStep) of a transposed LoadData", rows, max(lanes // ROWS, 1))
        columns = _multiple(core, "columns (kStep) of a transposed LoadData", columns, max(ROWS // lanes, 1))
    if rows == 0 or columns == 0:
        return
    size = source.dtype.itemsize
    elements = FRACTAL // size
    origin = shifted(source, (shape.column * abs(shape.stride) + shape.row) * FRACTAL)
    values = core.load(
        origin, strided((columns, rows, elements), (shape.stride * FRACTAL, FRACTAL, size), size)
    )
    if shape.transpose:
        matrix = values.reshape(columns, rows * ROWS, lanes)  # column of fractals, row, lane
        out_columns, out_rows = rows * ROWS // lanes, columns * lanes // ROWS
        values = matrix.transpose(0, 2, 1).reshape(out_rows, ROWS, out_columns, lanes).transpose(2, 0, 1, 3)
        values, columns, rows = values.reshape(out_columns, out_rows, elements), out_columns, out_rows
    write = strided((columns, rows, elements), (shape.step * FRACTAL, FRACTAL, size), size)
    core.store(destination, write, values.view(destination.dtype))


def _multiple(core: Core, what: str, value: int, of: int) -> int:
    if value % of:
        core.fault("bad_operand", what=what, value=value, limit=f"a multiple of {of}")
    return value - value % of


@dataclass(frozen=True, slots=True)
class Squares:
    """LoadData2dTransposeParams, in fractals: `repeat` squares (4 fractals of int4, 2 of 8-bit, 1 of 16-bit, 2 of
    32-bit elements) from fractal `start` on, `stride` from start to start (backwards when `descending`), `source_gap`
    between a square's fractals. In the destination `gap` lies between the first fractals of successive squares, and
    `fractal_gap` between those of one square."""

    start: int
    repeat: int
    stride: int
    gap: int
    fractal_gap: int
    source_gap: int = 0
    descending: bool = False


def fractals_of_square(tensor: Tensor) -> int:
    """Fractals that make a square matrix: 64 x 64 int4, 32 x 32 of 8, 16 x 16 of 16 and of 32 bits."""
    if tensor.dtype == INT4:
        return 4
    return {1: 2, 2: 1, 4: 2}[tensor.dtype.itemsize]


def load_squares(core: Core, site: int, destination: Tensor, source: Tensor, shape: Squares) -> None:
    """LoadDataWithTranspose, L1 to L0A or L0B: every square is transposed and cut into fractals again.

    The fractals of a square lie under each other; those of 32-bit elements beside each other (vendor's
    LoadDataWithTranspose page). A repeat of 0 is no operation.
    """
    pipe, _ = route(core, source.memory.space, destination.memory.space)
    count = fractals_of_square(source)
    core.begin(site, pipe, LOAD_TRANSPOSED, shape.repeat, shape.stride, work=shape.repeat * count * FRACTAL)
    repeat = bounded(core, "repeat of LoadDataWithTranspose", shape.repeat, REPEAT_LIMIT)
    for what, value in (
        ("start index", shape.start), ("source stride", shape.stride), ("destination gap", shape.gap),
        ("destination fractal gap", shape.fractal_gap),
    ):
        bounded(core, f"{what} of LoadDataWithTranspose", value, WORD_LIMIT)
    if repeat == 0:
        return
    if shape.descending and shape.start < shape.stride * (repeat - 1):
        core.fault(
            "bad_operand", what="the last source index of LoadDataWithTranspose",
            value=shape.start - shape.stride * (repeat - 1), limit="0 and more",
        )
    packed = source.dtype == INT4
    stored = as_stored(source)
    size = stored.dtype.itemsize
    elements = FRACTAL // size
    step = -shape.stride * FRACTAL if shape.descending else shape.stride * FRACTAL
    read = strided((repeat, count, elements), (step, (shape.source_gap + 1) * FRACTAL, size), size)
    values = core.load(shifted(stored, shape.start * FRACTAL), read)
    if packed:
        values = unpack_int4(np.ascontiguousarray(values)).astype(np.int8)
    turned = _transposed(values, columns_of(source.dtype))
    if packed:
        turned = pack_int4(turned)
    write = strided(
        (repeat, count, elements), ((shape.gap + 1) * FRACTAL, (shape.fractal_gap + 1) * FRACTAL, size), size
    )
    core.store(as_stored(destination), write, turned)


def _transposed(values: np.ndarray, lanes: int) -> np.ndarray:
    """Squares (repeat, fractals, elements) with rows and columns exchanged."""
    repeat, count, elements = values.shape
    if lanes < ROWS:
        side = values.reshape(repeat, count, ROWS, lanes).transpose(0, 2, 1, 3).reshape(repeat, ROWS, ROWS)
        turned = side.transpose(0, 2, 1).reshape(repeat, ROWS, count, lanes).transpose(0, 2, 1, 3)
    else:
        turned = values.reshape(repeat, count * ROWS, lanes).transpose(0, 2, 1)
    return turned.reshape(repeat, count, elements)


def load_sparse(
    core: Core, site: int, destination: Tensor, source: Tensor, index: Tensor, start: int, repeat: int
) -> None:
    """LoadDataWithSparse: `repeat` fractals of the dense matrix from L1 to L0B, and 128 bytes of index matrix for each
    to the store beside L0B (vendor's LoadDataWithSparse page)."""
    pipe, _ = route(core, source.memory.space, destination.memory.space)
    core.begin(site, pipe, LOAD_SPARSE, repeat, start, work=repeat * (FRACTAL + FRACTAL // 4))
    repeat = bounded(core, "repeat of LoadDataWithSparse", repeat, REPEAT_LIMIT)
    start = bounded(core, "start index of LoadDataWithSparse", start, WORD_LIMIT)
    if repeat == 0:
        return
    dense = core.load(shifted(source, start * FRACTAL), contiguous(repeat * FRACTAL, 1))
    words = core.load(shifted(index, start * FRACTAL // 4), contiguous(repeat * FRACTAL // 4, 1))
    core.store(destination, contiguous(repeat * FRACTAL, 1), dense)
    kept = core.registers.values.get(SPARSE_INDEX)
    store = kept.copy() if isinstance(kept, np.ndarray) else np.zeros(destination.memory.size // 4, np.uint8)
    place = (destination.address - destination.memory.base) // 4
    part = store[max(place, 0) : place + words.size]
    part[:] = words.view(BYTE)[: part.size]
    core.registers.values[SPARSE_INDEX] = store


def fill(core: Core, site: int, destination: Tensor, repeat: int, blocks: int, gap: int, value: float) -> None:
    """Fill (InitConstValue): `repeat` runs of `blocks` blocks with `gap` blocks between them; a block is 32 bytes in L1
    and 512 in L0A and L0B (vendor's Fill page).

    Raises UserError where the chip cannot fill that memory, and for 8-bit elements.
    """
    space = destination.memory.space
    path = core.chip.path(f"fill_{space.name.lower()}")
    if path is None:
        raise UserError(f"{core.chip.name} cannot fill {space.name}")
    if destination.dtype.itemsize not in (2, 4):
        raise UserError(f"InitConstValue takes elements of 16 and 32 bits, not {type_name(destination.dtype)}")
    unit = BLOCK if space == Space.L1 else FRACTAL
    core.begin(site, int(path.pipe), FILL, repeat, blocks, work=repeat * blocks * unit)
    limit = (1 << 15) - 1
    repeat = bounded(core, "repeat of InitConstValue", repeat, limit)
    blocks = bounded(core, "blocks of InitConstValue", blocks, limit)
    gap = bounded(core, "gap of InitConstValue", gap, limit)
    if repeat == 0 or blocks == 0:
        return
    size = destination.dtype.itemsize
    shape = strided((repeat, blocks * unit // size), ((blocks + gap) * unit, size), size)
    core.store(destination, shape, np.asarray(value).astype(destination.dtype))
