"""Integer arithmetic of the vector unit: wrapping or saturating, and shifts."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.npu.numbers.dtypes import Array, DType, integer_range, type_name


def add(a: Array, b: Any, saturate: bool = False) -> Array:
    """a + b of one integer type (`b` may be a scalar), wrapping, or with `saturate` kept in range.

    The vector unit wraps unless its saturation flag is set (hardware.md 4.1; vendor's boundary-value tables for Add).
    Raises ValueError for operands of two types, for types that are not integers and for saturation in 64 bits, which
    the unit does not have.
    """
    a, b = _operands(a, b, saturate)
    return _clipped(a.astype(np.int64) + b.astype(np.int64), a.dtype) if saturate else np.add(a, b)


def sub(a: Array, b: Any, saturate: bool = False) -> Array:
    """a - b; types, modes and errors as for `add`."""
    a, b = _operands(a, b, saturate)
    return _clipped(a.astype(np.int64) - b.astype(np.int64), a.dtype) if saturate else np.subtract(a, b)


def mul(a: Array, b: Any, saturate: bool = False) -> Array:
    """a * b; types, modes and errors as for `add`."""
    a, b = _operands(a, b, saturate)
    if not saturate:
        return np.multiply(a, b)
    wide = np.uint64 if a.dtype.kind == "u" else np.int64  # 32 x 32 bits fit either
    return _clipped(a.astype(wide) * b.astype(wide), a.dtype)


def shift_left(values: Array, amount: Any) -> Array:
    """values << amount: logical for unsigned types, arithmetic for signed ones; 0 from the type's width on.

    Arithmetic means that the sign bit stays and the bits below it shift out: int16 0b1010101010101010 by 1 is
    0b1101010101010100 (vendor's ShiftLeft page; C would give 0b0101010101010100). `amount` is a scalar or an array.
    Raises ValueError for a negative amount or for a type that is not an integer.
    """
    width, amount = _shift(values, amount)
    kept = np.minimum(amount, width - 1).astype(values.dtype)
    shifted = values << kept
    if values.dtype.kind == "i":
        low, high = (values.dtype.type(bound) for bound in integer_range(values.dtype))
        shifted = (values & low) | (shifted & high)
    return np.where(amount < width, shifted, values.dtype.type(0))


def shift_right(values: Array, amount: Any, rounded: bool = False) -> Array:
    """values >> amount: logical for unsigned types, arithmetic for signed ones, so 0 or -1 from the width on.

    With `rounded` (roundEn, A2 and A3) the last bit shifted out is added to the result; for unsigned types the unit has
    no such rounding and roundEn no effect (vendor's ShiftRight page). `amount` and errors as for `shift_left`.
    """
    width, amount = _shift(values, amount)
    if values.dtype.kind == "u":
        logical = values >> np.minimum(amount, width - 1).astype(values.dtype)
        return np.where(amount < width, logical, values.dtype.type(0))
    if not rounded:
        return np.asarray(values >> np.minimum(amount, width - 1).astype(values.dtype))
    before = values >> np.clip(amount - 1, 0, width - 1).astype(values.dtype)
    one = values.dtype.type(1)
    return np.where(amount > 0, (before >> one) + (before & one), values)


def _operands(a: Array, b: Any, saturate: bool) -> tuple[Array, Array]:
    a = np.asarray(a)
    _check_integer(a.dtype)
    if not isinstance(b, (np.ndarray, np.generic)):
        b = np.asarray(b, a.dtype)
    if b.dtype != a.dtype:
        raise ValueError(f"operands are {type_name(a.dtype)} and {type_name(b.dtype)}; both must have one type")
    if saturate and a.dtype.itemsize == 8:
        raise ValueError(f"{type_name(a.dtype)} arithmetic does not saturate")
    return a, b


def _clipped(wide: Array, dtype: DType) -> Array:
    low, high = integer_range(dtype)
    if wide.dtype.kind == "u":
        return np.minimum(wide, wide.dtype.type(high)).astype(dtype)
    return np.clip(wide, low, high).astype(dtype)


def _shift(values: Array, amount: Any) -> tuple[int, Array]:
    _check_integer(values.dtype)
    amount = np.asarray(amount).astype(np.int64)
    if amount.size and amount.min() < 0:
        raise ValueError(f"shift amount {amount.min()} is negative")
    return 8 * values.dtype.itemsize, amount


def _check_integer(dtype: DType) -> None:
    if dtype.kind not in "iu":
        raise ValueError(f"{type_name(dtype)} is not an integer type of the vector unit")
