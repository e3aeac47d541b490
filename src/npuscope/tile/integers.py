"""Integer operations. Operands in a row stay in a row where that is possible; everything else is arrays that wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.tile import affine
from npuscope.tile.affine import SIGNED, Affine, dense, fits
from npuscope.tile.box import Box, below, both, programs
from npuscope.tile.overflow import may_pass, plain, wrap, wrap_arrays

Value = Any
"""Affine, Box or an array."""

UNSIGNED: dict[np.dtype[Any], Any] = {
    np.dtype(np.int8): np.uint8,
    np.dtype(np.int16): np.uint16,
    np.dtype(np.int32): np.uint32,
    np.dtype(np.int64): np.uint64,
    np.dtype(np.bool_): np.bool_,
}


def unsigned(value: Value) -> np.ndarray:
    """The same bits read as numbers without a sign."""
    array = plain(dense(value))
    return array.view(UNSIGNED[array.dtype])


def signed(array: np.ndarray) -> np.ndarray:
    """The same bits read as numbers with a sign."""
    return array.view(SIGNED[array.dtype.itemsize * 8]) if array.dtype != np.bool_ else array


def reinterpret(dtype: np.dtype[Any], value: Value) -> np.ndarray:
    """The same bits as another type of the same width."""
    return np.ascontiguousarray(plain(dense(value))).view(dtype)


def add(site: int, one: Value, other: Value) -> Value:
    """one + other."""
    if type(one) is Affine and type(other) is Affine:
        total = affine.add(one, other)
        return total if fits(total) else wrap("+", site, one, other, total)
    left, right = dense(one), dense(other)
    if left.dtype == np.bool_:
        return left ^ right
    return _watched("+", site, plain(left) + plain(right), left, right)


def subtract(site: int, one: Value, other: Value) -> Value:
    """one - other."""
    if type(one) is Affine and type(other) is Affine:
        total = affine.subtract(one, other)
        return total if fits(total) else wrap("-", site, one, other, total)
    left, right = dense(one), dense(other)
    if left.dtype == np.bool_:
        return left ^ right
    return _watched("-", site, plain(left) - plain(right), left, right)


def multiply(site: int, one: Value, other: Value) -> Value:
    """one * other."""
    if type(one) is Affine and type(other) is Affine:
        total = affine.multiply(one, other)
        if total is not None:
            return total if fits(total) else wrap("*", site, one, other, total)
    left, right = dense(one), dense(other)
    if left.dtype == np.bool_:
        return left & right
    return _watched("*", site, plain(left) * plain(right), left, right)


def _watched(operation: str, site: int, result: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return wrap_arrays(operation, site, result, one, other) if may_pass(operation, one, other) else result


class DividedByZero(ArithmeticError):
    """A division by zero in a lane; `lanes` says in which."""

    def __init__(self, lanes: np.ndarray) -> None:
        self.lanes = lanes
        super().__init__("integer division by zero")


Report = Callable[[np.ndarray], None]
"""Told the lanes in which a divisor is zero."""


def divide(report: Report, one: Value, other: Value) -> Value:
    """one / other, towards zero."""
    if type(one) is Affine and _is_plain_divisor(other) and one.flat:
        low, _ = one.extremes()
        if low >= 0 and other.base > 0:
            return affine.Affine(one.base // other.base, one.strides, one.shape, one.bits)
    left, right = plain(dense(one)), _divisor(report, other)
    quotient = np.floor_divide(left, right)
    return quotient + ((quotient * right != left) & ((left < 0) != (right < 0))).astype(quotient.dtype)


def remainder(report: Report, one: Value, other: Value) -> Value:
    """What a division towards zero leaves; it has the sign of `one`."""
    if type(one) is Affine and _is_plain_divisor(other) and other.base > 0:
        low, high = one.extremes()
        if low >= 0 and high < other.base:
            return one
        if one.flat and low >= 0:
            return affine.Affine(one.base % other.base, one.strides, one.shape, one.bits)
    return np.fmod(plain(dense(one)), _divisor(report, other))


def divide_unsigned(report: Report, one: Value, other: Value) -> Value:
    """one / other of numbers without a sign."""
    return signed(unsigned(one) // unsigned(_divisor(report, other)))


def remainder_unsigned(report: Report, one: Value, other: Value) -> Value:
    """What that leaves."""
    return signed(unsigned(one) % unsigned(_divisor(report, other)))


def floor_divide(report: Report, one: Value, other: Value) -> Value:
    """one / other, downwards."""
    return np.floor_divide(plain(dense(one)), _divisor(report, other))


def ceil_divide(report: Report, one: Value, other: Value) -> Value:
    """one / other, upwards."""
    return -np.floor_divide(-plain(dense(one)), _divisor(report, other))


def ceil_divide_unsigned(report: Report, one: Value, other: Value) -> Value:
    """one / other of numbers without a sign, upwards."""
    left, right = unsigned(one), unsigned(_divisor(report, other))
    return signed(left // right + (left % right != 0).astype(left.dtype))


def _is_plain_divisor(value: Value) -> bool:
    return type(value) is Affine and value.flat and isinstance(value.base, int)


def _divisor(report: Report, value: Value) -> np.ndarray:
    """The divisor with ones in place of zeros, which are reported."""
    array = plain(dense(value))
    zero = array == 0
    if not zero.any():
        return array
    report(zero)
    return np.where(zero, array.dtype.type(1), array)


def conjunction(one: Value, other: Value) -> Value:
    """one & other."""
    if type(one) is Box and type(other) is Box:
        return both(one, other)
    return plain(dense(one)) & plain(dense(other))


def disjunction(one: Value, other: Value) -> Value:
    """one | other."""
    return plain(dense(one)) | plain(dense(other))


def exclusive(one: Value, other: Value) -> Value:
    """one ^ other."""
    return plain(dense(one)) ^ plain(dense(other))


def shift_left(site: int, one: Value, other: Value) -> Value:
    """one << other; 0 when that shifts everything out."""
    if type(one) is Affine and _is_plain_divisor(other) and 0 <= other.base < one.bits - 1:
        return multiply(site, one, Affine(1 << other.base, other.strides, other.shape, one.bits))
    left, right = plain(dense(one)), unsigned(other)
    bits = left.dtype.itemsize * 8
    return np.where(right < bits, left << (right % bits).astype(left.dtype), left.dtype.type(0))


def shift_right(one: Value, other: Value) -> Value:
    """one >> other, the sign moving in."""
    left, right = plain(dense(one)), unsigned(other)
    bits = left.dtype.itemsize * 8
    return left >> np.minimum(right, bits - 1).astype(left.dtype)


def shift_right_unsigned(one: Value, other: Value) -> Value:
    """one >> other, zeros moving in."""
    left, right = unsigned(one), unsigned(other)
    bits = left.dtype.itemsize * 8
    return signed(np.where(right < bits, left >> (right % bits).astype(left.dtype), left.dtype.type(0)))


def minimum(one: Value, other: Value) -> Value:
    """The smaller one."""
    if type(one) is Affine and type(other) is Affine:
        if one.flat and other.flat:
            return Affine(_least(one.base, other.base), one.strides, one.shape, one.bits)
        if one.extremes()[1] <= other.extremes()[0]:
            return one
        if other.extremes()[1] <= one.extremes()[0]:
            return other
    return np.minimum(dense(one), dense(other))


def maximum(one: Value, other: Value) -> Value:
    """The larger one."""
    if type(one) is Affine and type(other) is Affine:
        if one.flat and other.flat:
            return Affine(_most(one.base, other.base), one.strides, one.shape, one.bits)
        if one.extremes()[0] >= other.extremes()[1]:
            return one
        if other.extremes()[0] >= one.extremes()[1]:
            return other
    return np.maximum(dense(one), dense(other))


def _least(one: Any, other: Any) -> Any:
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else np.minimum(one, other)


def _most(one: Any, other: Any) -> Any:
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else np.maximum(one, other)


def minimum_unsigned(one: Value, other: Value) -> Value:
    """The smaller one of numbers without a sign."""
    return signed(np.minimum(unsigned(one), unsigned(other)))


def maximum_unsigned(one: Value, other: Value) -> Value:
    """The larger one of numbers without a sign."""
    return signed(np.maximum(unsigned(one), unsigned(other)))


def high_product_unsigned(one: Value, other: Value) -> Value:
    """The upper half of the product of numbers without a sign."""
    left, right = unsigned(one), unsigned(other)
    if left.dtype.itemsize < 8:
        bits = np.uint64(left.dtype.itemsize * 8)
        return signed(((left.astype(np.uint64) * right) >> bits).astype(left.dtype))
    low_mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = left >> half, left & low_mask, right >> half, right & low_mask
    middle = a * d + ((b * d) >> half)
    carry = (middle & low_mask) + b * c
    return signed(a * c + (middle >> half) + (carry >> half))


COMPARISONS: list[Callable[[Any, Any], Any]] = [
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
]  # fmt: skip
"""By MLIR's number of an integer predicate; those from 6 on compare without a sign."""
FIRST_UNSIGNED = 6


def compare(predicate: int, one: Value, other: Value) -> Value:
    """The truth of a comparison."""
    if type(one) is Affine and type(other) is Affine:
        found = _compare_rows(predicate, one, other)
        if found is not None:
            return found
    if predicate >= FIRST_UNSIGNED:
        return COMPARISONS[predicate](unsigned(one), unsigned(other))
    return COMPARISONS[predicate](plain(dense(one)), plain(dense(other)))


def _compare_rows(predicate: int, one: Affine, other: Affine) -> Value | None:
    if predicate >= FIRST_UNSIGNED:
        if one.extremes()[0] < 0 or other.extremes()[0] < 0:
            return None
        predicate -= 4
    if predicate < 2:
        if not (one.flat and other.flat):
            return None
        holds = np.asarray(COMPARISONS[predicate](one.base, other.base)).reshape(-1)
        return programs(holds, one.shape) if one.shape else holds
    if one.bits == 64 and not _is_small(one, other):
        return None  # their difference may not fit
    if predicate in (4, 5):  # a > b is b < a
        one, other, predicate = other, one, predicate - 2
    return below(affine.subtract(one, other), strict=predicate == 2)


def _is_small(*values: Affine) -> bool:
    """Whether differences of the numbers fit 64 bits."""
    limit = 1 << 62
    return all(-limit <= low and high < limit for low, high in (value.extremes() for value in values))


def widen(bits: int, value: Value) -> Value:
    """The same number, or -1 for true, with more bits."""
    if type(value) is Affine:
        return Affine(value.base, value.strides, value.shape, bits)
    array = dense(value)
    return -array.astype(SIGNED[bits]) if array.dtype == np.bool_ else array.astype(SIGNED[bits])


def widen_unsigned(bits: int, value: Value) -> Value:
    """The number without a sign (1 for true) with more bits."""
    if type(value) is Affine and value.extremes()[0] >= 0:
        return Affine(value.base, value.strides, value.shape, bits)
    return unsigned(value).astype(SIGNED[bits])


def narrow(bits: int, value: Value) -> Value:
    """The lower bits."""
    if bits == 1:
        return (plain(dense(value)) & 1).astype(np.bool_)
    if type(value) is Affine:
        shorter = Affine(value.base, value.strides, value.shape, bits)
        if fits(shorter):
            return shorter
    return plain(dense(value)).astype(SIGNED[bits])
