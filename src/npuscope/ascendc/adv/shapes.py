"""The shape info of a tensor as the adv layer reads it: a matrix whose columns are the last axis."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from npuscope.ascendc.tensor import original_shape_of, shape_of
from npuscope.npu.tensor import Tensor


class Matrix(NamedTuple):
    """Rows and columns as stored, and how many of the columns are more than padding."""

    rows: int
    columns: int
    original: int


def matrix_of(tensor: Tensor) -> Matrix | None:
    """The shape that set_shape_info put on a tensor, its leading axes taken as one; None where there is none."""
    if tensor.shape is None:
        return None
    extents = shape_of(tensor.shape)
    if not extents:
        return None
    return Matrix(prod(extents[:-1]), extents[-1], (original_shape_of(tensor.shape) or extents)[-1])
