"""The matrices of a product where they lie in memory: which bytes a tile covers, and its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.ascendc.adv.matmul_types import NZ
from npuscope.npu.core import Core
from npuscope.npu.layout import BLOCK, Layout, strided
from npuscope.npu.memory import Memory
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Space

FRACTAL = 16
"""Rows, and accumulator columns, of a fractal of the cube (hardware.md 1.5)."""


def aligned(value: int, unit: int) -> int:
    """`value` rounded up to a multiple of `unit`."""
    return -(-value // unit) * unit


def nd_part(tensor: Tensor, row: int, column: int, rows: int, columns: int, stride: int) -> tuple[Tensor, Layout]:
    """Rows and columns of a row-major matrix with `stride` elements from row to row; the layout is (rows, columns)."""
    size = tensor.dtype.itemsize
    return shifted(tensor, (row * stride + column) * size), strided((rows, columns), (stride * size, size), size)


def nz_part(
    tensor: Tensor, row: int, blocks: range, rows: int, height: int, width: int
) -> tuple[Tensor, Layout]:
    """Rows of whole column blocks of an NZ matrix: element (r, c) at ``c // width * height * width + r * width + c %
    width``; the layout is (blocks, rows, width)."""
    size = tensor.dtype.itemsize
    start = (blocks.start * height + row) * width * size
    strides = (height * width * size, width * size, size)
    return shifted(tensor, start), strided((len(blocks), rows, width), strides, size)


@dataclass(slots=True)
class Source:
    """A or B as its tensor is stored: `stride` is the elements from row to row of ND, the rows of an NZ matrix.

    `transposed` says that the stored matrix is the transpose of the one that is multiplied. A scalar stands for a
    matrix full of it. `private` marks a copy that the library made, whose accesses are nobody's business.
    """

    tensor: Tensor | None
    format: int
    stride: int
    transposed: bool
    scalar: float | None = None
    private: bool = False

    @property
    def space(self) -> Space | None:
        """Where it lies; None for a scalar."""
        return None if self.tensor is None else self.tensor.memory.space

    def moved(self, elements: int) -> Source:
        """The matrix that starts `elements` further on (the next one of a batch)."""
        tensor = self.tensor
        if tensor is None or not elements:
            return self
        start = shifted(tensor, elements * tensor.dtype.itemsize)
        return Source(start, self.format, self.stride, self.transposed, None, self.private)

    def part(self, row: int, column: int, rows: int, columns: int) -> tuple[Tensor, Layout]:
        """What a tile of the multiplied matrix covers in memory; whole column blocks where it is stored NZ."""
        assert self.tensor is not None
        if self.transposed:
            row, column, rows, columns = column, row, columns, rows
        if self.format == NZ:
            width = BLOCK // self.tensor.dtype.itemsize
            blocks = range(column // width, -(-(column + columns) // width))
            return nz_part(self.tensor, row, blocks, rows, self.stride, width)
        return nd_part(self.tensor, row, column, rows, columns, self.stride)

    def values(self, core: Core, row: int, column: int, rows: int, columns: int, dtype: Any) -> np.ndarray:
        """A tile of the multiplied matrix as `dtype`, shape (rows, columns); bytes outside the memory count as 0."""
        if self.scalar is not None:
            return np.full((rows, columns), self.scalar, dtype)
        tensor, layout = self.part(row, column, rows, columns)
        stored = core.view(tensor, layout)
        if self.format == NZ:
            first, count = (row, rows) if self.transposed else (column, columns)
            stored = stored.transpose(1, 0, 2).reshape(stored.shape[1], -1)
            skip = first % layout.shape[2]
            stored = stored[:, skip : skip + count]
        matrix = stored.T if self.transposed else stored
        return matrix.astype(dtype)


def private_copy(values: np.ndarray) -> Tensor:
    """Values in a memory of the library's own, as a tensor."""
    memory = Memory(Space.GM, 0, np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    return Tensor(memory, 0, values.dtype, -1, values.size)
