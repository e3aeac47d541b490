"""Microscaling: factors of a product whose elements, in few bits, share a scale by groups along the inner axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from npuscope.tile.affine import dense
from npuscope.tile.shapes import Shape, whole

FORMATS: dict[int, Any] = {
    0: ml_dtypes.float8_e4m3fn, 1: ml_dtypes.float8_e5m2, 4: ml_dtypes.float4_e2m1fn, 5: ml_dtypes.bfloat16,
    6: np.float16,
}  # fmt: skip
"""Element types by Triton's number; the fourth lies two to a byte, the first one in the lower half."""


@dataclass(frozen=True)
class Factor:
    """One side of the product: its shape as passed, the type of its elements, the axis summed over, whether elements of
    4 bits are packed along that axis, and the shape of its scales (rows by groups)."""

    shape: Shape
    element: Any
    depth_axis: int
    packed: bool
    scale_shape: Shape

    def numbers(self, value: Any, scale: Any) -> np.ndarray:
        """The elements times their scales, in float32."""
        array = whole(self.shape, value)
        axis = self.depth_axis + 1
        if self.element is ml_dtypes.float4_e2m1fn:
            rows, columns = array.ndim - 2, array.ndim - 1
            array = _unpacked(array, axis if self.packed else (rows if axis == columns else columns))
        elif array.dtype != np.dtype(self.element):
            array = np.ascontiguousarray(array).view(self.element)
        wide = array.astype(np.float32)
        if scale is None:
            return wide
        scales = _scales(whole(self.scale_shape, scale))
        group = wide.shape[axis] // scales.shape[-1]
        spread = np.repeat(scales, group, axis=-1)
        return wide * (spread if axis == wide.ndim - 1 else np.swapaxes(spread, -1, -2))


def _unpacked(array: np.ndarray, axis: int) -> np.ndarray:
    raw = array.view(np.uint8)
    pairs = np.stack([raw & 0xF, raw >> 4], axis=axis + 1)
    shape = list(raw.shape)
    shape[axis] *= 2
    return np.ascontiguousarray(pairs).reshape(shape).view(ml_dtypes.float4_e2m1fn)


def _scales(array: np.ndarray) -> np.ndarray:
    """Scales as float32: integers are exponents of two, 127 being 1 and 255 no number."""
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    return array.astype(np.float32)


def dot_scaled(
    left: Factor, right: Factor, one: Any, other: Any, one_scale: Any, other_scale: Any, total: Any
) -> np.ndarray:
    """total + one @ other, summed in float32."""
    product = np.matmul(left.numbers(one, one_scale), right.numbers(other, other_scale))
    summed = dense(total)
    return (product + summed.astype(np.float32)).astype(summed.dtype)
