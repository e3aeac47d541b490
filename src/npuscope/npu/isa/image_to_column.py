"""LoadData (3D): the image-to-column transform from L1 into L0A and L0B (vendor's LoadData page, convolution).

The image lies in L1 as channel blocks of 32 bytes (NC1HWC0); a last block with fewer channels is only as wide as these.
Its column matrix has a row for each position of the filter (m, along the width first) and a column for each (channel
block, filter row, filter column, channel) (k). An instruction takes rows and columns of it, in one window or, with the
repeat registers, in several that are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from npuscope.errors import UserError
from npuscope.npu.core import READ, Core, opcode
from npuscope.npu.isa.fractal import BYTE, FRACTAL, ROWS, columns_of, parts
from npuscope.npu.isa.move import route
from npuscope.npu.layout import BLOCK, Layout, contiguous, strided
from npuscope.npu.numbers import type_name
from npuscope.npu.numbers.dtypes import INT4
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Space

IMAGE_TO_COLUMN = opcode("load_data_3d")
_OUTSIDE, _PADDING = -2, -1


@dataclass(frozen=True, slots=True)
class Geometry:
    """The image (`height` x `width` x `channels`), the padding (left, right, top, bottom) and the filter."""

    height: int
    width: int
    channels: int
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    dilation_w: int = 1
    dilation_h: int = 1

    @property
    def positions(self) -> tuple[int, int]:
        """Filter positions along height and width."""
        left, right, top, bottom = self.pads
        reach_h = self.dilation_h * (self.filter_h - 1) + 1
        reach_w = self.dilation_w * (self.filter_w - 1) + 1
        high = (self.height + top + bottom - reach_h) // max(self.stride_h, 1) + 1
        wide = (self.width + left + right - reach_w) // max(self.stride_w, 1) + 1
        return max(high, 0), max(wide, 0)


@dataclass(frozen=True, slots=True)
class Window:
    """`times` windows of `count` rows or columns, `step` apart, the first from `start` on."""

    start: int
    count: int
    times: int = 1
    step: int = 0

    def indices(self, unit: int) -> np.ndarray:
        """The rows or columns in order; each window is filled up to a multiple of `unit` with -1."""
        one = np.full(-(-self.count // unit) * unit, -1, np.int64)
        one[: self.count] = np.arange(self.count)
        starts = self.start + self.step * np.arange(self.times, dtype=np.int64)
        return np.where(one < 0, -1, one + starts[:, None]).reshape(-1)


@dataclass(frozen=True, slots=True)
class Touched:
    """What is read of the image: `nbytes` bytes at each of `starts`; where these form a regular walk, also as `layout`
    from byte `first` on."""

    starts: np.ndarray
    nbytes: int
    first: int
    layout: Layout | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Where each element of the columns comes from: `offsets` (rows, columns) into the image in elements. `special`
    marks those that are not in the image, `padding` those of them that are the fill value; the others are zero. `span`
    is how many elements of the image are in reach."""

    offsets: np.ndarray
    special: np.ndarray | None
    padding: np.ndarray | None
    reads: tuple[Touched, ...]
    span: int


@lru_cache(maxsize=256)
def plan(geometry: Geometry, rows: Window, columns: Window, lanes: int, size: int) -> Plan:
    """The plan for windows of the column matrix; `lanes` elements of `size` bytes make a channel block."""
    high, wide = geometry.positions
    m, k = rows.indices(ROWS), columns.indices(lanes)
    points = geometry.filter_h * geometry.filter_w
    block, point, channel, block_width, block_start = _columns(geometry, k, lanes, points)
    out_h, out_w = np.divmod(m, max(wide, 1))
    kernel_h, kernel_w = np.divmod(point, geometry.filter_w)
    left, _, top, _ = geometry.pads
    h = (out_h * geometry.stride_h - top)[:, None] + kernel_h * geometry.dilation_h
    w = (out_w * geometry.stride_w - left)[:, None] + kernel_w * geometry.dilation_w
    known = ((m >= 0) & (m < high * wide))[:, None] & ((k >= 0) & (k < geometry.channels * points))
    inside = known & (h >= 0) & (h < geometry.height) & (w >= 0) & (w < geometry.width)
    pixels = block_start + (h * geometry.width + w) * block_width
    offsets = np.where(inside, pixels + channel, np.where(known, _PADDING, _OUTSIDE))
    special = None if inside.all() else ~inside
    padding = offsets == _PADDING
    reads = []
    for width in np.unique(block_width):
        starts = np.unique(pixels[inside & (block_width == width)]) * size
        if starts.size:
            reads.append(_touched(starts.astype(np.int64), int(width) * size))
    span = int(offsets.max(initial=-1)) + 1
    return Plan(np.maximum(offsets, 0), special, padding if padding.any() else None, tuple(reads), span)


def _columns(
    geometry: Geometry, k: np.ndarray, lanes: int, points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(channel block, filter point, channel in the block, block width, block start in elements) of columns `k`."""
    whole, rest = divmod(geometry.channels, lanes)
    full = whole * points * lanes
    last = k >= full
    place = np.where(last, k - full, k)
    width = np.where(last, max(rest, 1), lanes)
    block = np.where(last, whole, place // (points * lanes))
    inner = np.where(last, place, place % (points * lanes))
    return block, inner // width, inner % width, width, block * (geometry.height * geometry.width * lanes)


def _touched(starts: np.ndarray, nbytes: int) -> Touched:
    """`nbytes` bytes at sorted `starts`, as a walk where they form equal runs at equal distances."""
    breaks = np.flatnonzero(np.diff(starts) != nbytes) + 1
    heads = starts[np.concatenate([[0], breaks])]
    lengths = np.diff(np.concatenate([[0], breaks, [starts.size]])) * nbytes
    steps = np.diff(heads)
    if np.any(lengths != lengths[0]) or (steps.size and np.any(steps != steps[0])):
        return Touched(starts, nbytes, 0, None)
    step = int(steps[0]) if steps.size else int(lengths[0])
    return Touched(starts, nbytes, int(heads[0]), strided((heads.size, int(lengths[0])), (step, 1), 1))


@dataclass(frozen=True, slots=True)
class Columns:
    """One instruction: which rows and columns, whether L0A gets them transposed, the fill value's bits, the boundary in
    bytes beyond which L1 is read from its start again (0: none), and the distance between columns of fractals of the
    destination (NPU arch 3510; 0: as many as there are rows of fractals)."""

    geometry: Geometry
    rows: Window
    columns: Window
    transpose: bool = False
    pad_bits: int = 0
    boundary: int = 0
    step: int = 0


def image_to_column(core: Core, site: int, destination: Tensor, source: Tensor, shape: Columns) -> None:
    """One LoadData (3D). L0A gets the columns in fractals row by row (column by column on NPU arch 3510), or
    transposed; L0B always transposed. An empty image, window or filter is no operation.

    Rows that fill up the last fractal are zero. Raises UserError for types that the path does not take.
    """
    to_b = destination.memory.space == Space.L0B
    _check(core, destination, source, shape, to_b)
    pipe, _ = route(core, source.memory.space, destination.memory.space)
    m, k = shape.rows.count * shape.rows.times, shape.columns.count * shape.columns.times
    core.begin(site, pipe, IMAGE_TO_COLUMN, m, k, work=m * k * source.dtype.itemsize)
    g = shape.geometry
    if not (m and k and g.height and g.width and g.channels and g.filter_w and g.filter_h):
        return
    if source.dtype == INT4:
        source, destination, shape = source.cast(BYTE), destination.cast(BYTE), _in_bytes(shape)
    matrix = gather_columns(core, source, shape)
    if to_b or shape.transpose:
        _store(core, destination, matrix.T, by_column=to_b or core.chip.arch == "3510", step=shape.step)
    else:
        _store(core, destination, matrix, by_column=core.chip.arch == "3510", step=shape.step)


def _check(core: Core, destination: Tensor, source: Tensor, shape: Columns, to_b: bool) -> None:
    narrow = source.dtype == INT4 or (source.dtype.itemsize == 1 and core.chip.arch != "3510")
    if narrow and (to_b or shape.transpose):
        where = "L0B" if to_b else "L0A transposed"
        raise UserError(f"LoadData (3D) cannot load {type_name(source.dtype)} to {where} on {core.chip.name}")
    if source.dtype != destination.dtype:
        raise UserError(f"LoadData (3D) cannot turn {type_name(source.dtype)} into {type_name(destination.dtype)}")


def _in_bytes(shape: Columns) -> Columns:
    """int4 moves as bytes of two channels; all its channel counts are even."""
    g, k = shape.geometry, shape.columns
    halved = Geometry(
        g.height, g.width, g.channels // 2, g.pads, g.stride_w, g.stride_h, g.filter_w, g.filter_h, g.dilation_w,
        g.dilation_h,
    )
    pad = (shape.pad_bits & 0xF) * 0x11
    return Columns(
        halved, shape.rows, Window(k.start // 2, -(-k.count // 2), k.times, k.step // 2), False, pad, shape.boundary,
        shape.step,
    )


def gather_columns(core: Core, source: Tensor, shape: Columns) -> np.ndarray:
    """The windows' elements (rows, columns), recorded as reads."""
    size = source.dtype.itemsize
    found = plan(shape.geometry, shape.rows, shape.columns, columns_of(source.dtype), size)
    for touched in found.reads:
        _note(core, source, touched)
    if shape.boundary:
        at = source.address - source.memory.base + found.offsets * size
        places = np.where(at >= shape.boundary, at % shape.boundary, at) // size
        memory = source.memory.typed(source.dtype)
        values = memory.take(np.minimum(places, memory.size - 1))
    else:
        values = core.view(source, contiguous(max(found.span, 1), size)).take(found.offsets)
    if found.special is not None:
        values = np.where(found.special, source.dtype.type(0), values)
    if found.padding is not None:
        raw = (shape.pad_bits % (1 << 64)).to_bytes(8, "little")[:size]
        values = np.where(found.padding, np.frombuffer(raw, source.dtype)[0], values)
    return np.asarray(values, source.dtype)


def _note(core: Core, source: Tensor, touched: Touched) -> None:
    if touched.layout is not None:
        core.note(READ, shifted(source, touched.first), touched.layout)
        return
    number = core.recorder.add_explicit(touched.starts, touched.nbytes)
    core.recorder.accesses.extend((core.row, READ, source.buffer, source.address, number))


def _store(core: Core, destination: Tensor, matrix: np.ndarray, *, by_column: bool, step: int) -> None:
    """Write (rows, columns) as fractals, row by row of them or column by column; a last half row of fractals (8 of 16
    rows, transposed 32-bit elements) leaves the other half as it is."""
    size, lanes = destination.dtype.itemsize, columns_of(destination.dtype)
    rows, width = matrix.shape
    columns, high = -(-width // lanes), -(-rows // ROWS)
    if width % lanes:
        filled = np.zeros((rows, columns * lanes), matrix.dtype)
        filled[:, :width] = matrix
        matrix = filled
    row_step, column_step = (FRACTAL, (step or high) * FRACTAL) if by_column else (columns * FRACTAL, FRACTAL)
    for first, count, height in parts(rows, ROWS):
        part = matrix[first * ROWS : first * ROWS + count * height].reshape(count, height, columns, lanes)
        if by_column:
            shape, steps, values = (columns, count), (column_step, row_step), part.transpose(2, 0, 1, 3)
        else:
            shape, steps, values = (count, columns), (row_step, column_step), part.transpose(0, 2, 1, 3)
        write = strided((*shape, height, lanes), (*steps, BLOCK, size), size)
        core.store(shifted(destination, first * row_step), write, values)


def column_fractals(
    core: Core, site: int, destination: Tensor, source: Tensor, shapes: list[Columns], jump: int
) -> None:
    """LoadData (3D, first form) to L0A: one fractal of the column matrix after the other, `jump` fractals apart."""
    pipe, _ = route(core, source.memory.space, destination.memory.space)
    core.begin(site, pipe, IMAGE_TO_COLUMN, ROWS, len(shapes), work=len(shapes) * FRACTAL)
    size = destination.dtype.itemsize
    for number, shape in enumerate(shapes):
        values = gather_columns(core, source, shape)
        core.store(shifted(destination, number * jump * FRACTAL), contiguous(FRACTAL // size, size), values.reshape(-1))
