"""Floating-point operations; each rounds to its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.tile import directed
from npuscope.tile.affine import dense
from npuscope.tile.narrow import is_eight_bits, saturated, towards_zero
from npuscope.tile.shapes import Shape, whole

WIDE = np.dtype(np.float32)


def compare(predicate: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The truth of a comparison; MLIR's predicates 1-7 are false and 8-14 true where an operand is no number."""
    if predicate in (0, 15):
        return np.full((1,) * one.ndim, predicate == 15)
    if predicate == 7:
        return ~(np.isnan(one) | np.isnan(other))
    if predicate == 14:
        return np.isnan(one) | np.isnan(other)
    if predicate == 6:
        return (one < other) | (one > other)
    if predicate == 13:
        return one != other
    if predicate < 6:
        return _ORDERED[predicate](one, other)
    if predicate == 8:
        return ~((one < other) | (one > other))
    return ~_ORDERED[_OPPOSITE[predicate]](one, other)


_ORDERED: dict[int, Callable[..., Any]] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal,
}  # fmt: skip
_OPPOSITE = {9: 5, 10: 4, 11: 3, 12: 2}


def from_integer(dtype: np.dtype[Any], value: Any) -> np.ndarray:
    """An integer as a float; true is -1."""
    array = dense(value)
    return (-array.astype(np.int8) if array.dtype == np.bool_ else array).astype(dtype)


def to_integer(dtype: np.dtype[Any], value: np.ndarray) -> np.ndarray:
    """A float without its fraction, held at the ends of the integer's range; 0 for what is no number."""
    limits = np.iinfo(dtype)
    whole_part = np.trunc(value.astype(np.float64))
    held = np.clip(np.nan_to_num(whole_part, nan=0.0, posinf=limits.max, neginf=limits.min), limits.min, limits.max)
    result = held.astype(dtype)
    if dtype.itemsize == 8:
        result = np.where(held >= float(limits.max), limits.max, result).astype(dtype)
    return result


def multiply_add(one: np.ndarray, other: np.ndarray, third: np.ndarray) -> np.ndarray:
    """one * other + third, rounded once."""
    return directed.multiply_add("rn", one, other, third)


def through(function: Callable[[np.ndarray], np.ndarray], value: np.ndarray) -> np.ndarray:
    """A function of float32 applied to a narrower type."""
    if value.dtype.itemsize >= 4:
        return function(value)
    return function(value.astype(np.float32)).astype(value.dtype)


def reciprocal_root(value: np.ndarray) -> np.ndarray:
    """1 / sqrt(value)."""
    return value.dtype.type(1) / np.sqrt(value)


def dot(
    precision: str, left_shape: Shape, right_shape: Shape, result: np.dtype[Any], one: Any, other: Any, total: Any
) -> np.ndarray:
    """total + one @ other, the products summed in the result's type; `precision` "tf32" rounds the factors first."""
    left, right = whole(left_shape, one), whole(right_shape, other)
    wide = result if result.kind == "i" or result.itemsize >= 4 else WIDE
    left, right = left.astype(wide, copy=False), right.astype(wide, copy=False)
    if precision == "tf32" and wide == np.float32 and dense(one).dtype == np.float32:
        left, right = to_tf32(left), to_tf32(right)
    product = np.matmul(left, right)
    summed = dense(total)
    if summed.size == 1 and not summed.any():
        return product.astype(result, copy=False)
    return (product + summed).astype(result, copy=False)


def to_tf32(value: np.ndarray) -> np.ndarray:
    """float32 numbers with 10 bits of fraction, rounded to the nearest, halves to even."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    rounded = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    result = (rounded & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(value), result, value)


def to_float(dtype: np.dtype[Any], cut: bool, value: np.ndarray) -> np.ndarray:
    """The value in another float type, rounded to the nearest, or `cut` towards zero; 8 bits hold at their largest."""
    if cut and dtype.itemsize < value.dtype.itemsize:
        return towards_zero(dtype, value)
    return saturated(dtype, value) if is_eight_bits(dtype) and value.dtype != dtype else value.astype(dtype)


def clamp(keeps_nan: bool, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The value held between two bounds; what is no number stays so, or becomes `low`."""
    if keeps_nan:
        return np.minimum(np.maximum(value, low), high)
    return np.fmin(np.fmax(value, low), high)
