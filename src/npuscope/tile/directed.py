"""Arithmetic rounded as asked: to the nearest ("rn"), towards zero ("rz"), down ("rd") or up ("ru").

An operation is done to the nearest first; the sign of what that left out tells which way the others lie. The errors of
sums and products are found exactly, by the classical transformations of Knuth, Veltkamp and Dekker.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MODES = ("rn", "rz", "rd", "ru")


def add(mode: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """one + other."""
    total, left = two_sum(one, other)
    return settle(mode, total, left, one, other)


def subtract(mode: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """one - other."""
    return add(mode, one, -other)


def multiply(mode: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """one * other."""
    product, left = two_product(one, other)
    return settle(mode, product, left, one, other)


def divide(mode: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """one / other."""
    quotient = one / other
    if mode == "rn":
        return quotient
    product, left = two_product(quotient, other)
    rest = (one - product) - left
    return settle(mode, quotient, rest * np.sign(other), one, np.where(other == 0, np.inf, other).astype(other.dtype))


def reciprocal(mode: str, value: np.ndarray) -> np.ndarray:
    """1 / value."""
    return divide(mode, np.ones_like(value), value)


def root(mode: str, value: np.ndarray) -> np.ndarray:
    """The square root."""
    found = np.sqrt(value)
    if mode == "rn":
        return found
    square, left = two_product(found, found)
    return settle(mode, found, (value - square) - left, value)


def multiply_add(mode: str, one: np.ndarray, other: np.ndarray, third: np.ndarray) -> np.ndarray:
    """one * other + third, rounded once."""
    dtype = one.dtype
    if dtype.itemsize < 8:
        # The product is exact in float64, and a sum rounded to odd there may be rounded again.
        total = odd_sum(one.astype(np.float64) * other.astype(np.float64), third.astype(np.float64))
        return narrow(dtype, mode, total)
    product, low = two_product(one, other)
    upper, lower = two_sum(third, low)
    high, rest = two_sum(product, upper)
    tail = odd_sum(rest, lower)
    plain = one * other + third
    with_care = add(mode, high, tail)
    return np.where(np.isfinite(product) & np.isfinite(low) & np.isfinite(high), with_care, plain)


def two_sum(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sum and what is missing from it."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


_SPLITTER = 134217729.0  # 2^27 + 1


def two_product(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The product and what is missing from it."""
    if one.dtype.itemsize < 8:
        exact = one.astype(np.float64) * other.astype(np.float64)
        product = exact.astype(one.dtype)
        return product, exact - product
    product = one * other
    (a, b), (c, d) = _halves(one), _halves(other)
    return product, ((a * c - product) + a * d + b * c) + b * d


def _halves(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = value * _SPLITTER
    high = scaled - (scaled - value)
    return high, value - high


def odd_sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of float64 numbers; where it is not exact, that neighbour of it whose last bit is set."""
    total, left = two_sum(one, other)
    even = (np.ascontiguousarray(total).view(np.int64) & 1) == 0
    moved = np.nextafter(total, np.where(left > 0, np.inf, -np.inf))
    return np.where(even & (left != 0) & np.isfinite(total) & np.isfinite(left), moved, total)


def settle(mode: str, nearest: np.ndarray, left: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    """The result rounded as asked, from the nearest one and the sign of what is missing from it.

    An infinity that came out of finite operands stands for a number beyond the largest.
    """
    if mode == "rn":
        return nearest
    finite = np.ones(nearest.shape, np.bool_)
    for operand in operands:
        finite = finite & np.isfinite(operand)
    missing = np.where(np.isinf(nearest), -np.sign(nearest), np.sign(np.nan_to_num(left)))
    missing = np.where(finite, missing, 0)
    return step(mode, nearest, missing)


def step(mode: str, nearest: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """`nearest`, or its neighbour on the side that the mode asks for; `missing` has the sign of exact - nearest."""
    if mode == "rd":
        return _lower(nearest, missing)
    if mode == "ru":
        return _upper(nearest, missing)
    if mode == "rz":
        return np.where(np.signbit(nearest), _upper(nearest, missing), _lower(nearest, missing))
    return nearest


def _lower(nearest: np.ndarray, missing: np.ndarray) -> np.ndarray:
    return np.where(missing < 0, np.nextafter(nearest, nearest.dtype.type(-np.inf)), nearest)


def _upper(nearest: np.ndarray, missing: np.ndarray) -> np.ndarray:
    return np.where(missing > 0, np.nextafter(nearest, nearest.dtype.type(np.inf)), nearest)


def narrow(dtype: np.dtype[Any], mode: str, value: np.ndarray) -> np.ndarray:
    """Numbers (any that float64 or int64 holds) in a narrower float type."""
    nearest = value.astype(dtype)
    if mode == "rn":
        return nearest
    wide = np.longdouble if value.dtype.kind in "iu" and value.dtype.itemsize == 8 else np.float64
    exact = value.astype(wide)
    with np.errstate(invalid="ignore"):
        missing = np.sign(exact - nearest.astype(wide))
    missing = np.where(np.isfinite(exact), np.nan_to_num(missing), 0)
    return step(mode, nearest, missing)


def whole(mode: str, value: np.ndarray) -> np.ndarray:
    """Numbers without a fraction."""
    result: np.ndarray = _WHOLE[mode](value)
    return result


_WHOLE: dict[str, np.ufunc] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def to_integer(dtype: np.dtype[Any], mode: str, value: np.ndarray) -> np.ndarray:
    """Floats as integers, held at the ends of the type's range; 0 for what is no number."""
    limits = np.iinfo(dtype)
    rounded = whole(mode, value.astype(np.float64))
    low, high = float(limits.min), float(limits.max)
    result = np.clip(np.nan_to_num(rounded, nan=0.0, posinf=high, neginf=low), low, high)
    if dtype.itemsize < 8:
        return result.astype(dtype)
    return np.where(result >= high, limits.max, np.where(result >= high, 0.0, result).astype(dtype)).astype(dtype)
