"""Rounding to integers, to narrower floating-point formats and to integer types, in Ascend C's rounding modes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from npuscope.errors import Unsupported
from npuscope.npu.numbers.dtypes import (
    F16,
    F32,
    F64,
    INT4,
    Array,
    DType,
    FloatFormat,
    float_format,
    integer_range,
    is_floating,
)

# From 2**53 on float64 skips integers; below it every int64 and uint64 is exact.
_EXACT_IN_F64 = 1 << 53
# uint64 less 11 bits fits the 53 bits of float64; the highest bit cleared becomes the sticky bit.
_LOW_BITS, _STICKY_BIT = 0xFFF, 0x800


class RoundMode(IntEnum):
    """Ascend C's RoundMode (hardware.md 4.1, frontends.md): NONE is RINT where the result is not exact."""

    NONE = 0
    RINT = 1  # to nearest, ties to even
    FLOOR = 2
    CEIL = 3
    ROUND = 4  # to nearest, ties away from zero
    TRUNC = 5
    ODD = 6  # von Neumann: what is not exact goes to the neighbour whose last bit is 1


NEAREST_EVEN = (RoundMode.NONE, RoundMode.RINT)


def round_to_integer(values: Array, mode: RoundMode | int) -> Array:
    """`values` (f32 or f64) rounded to integral values of the same type; signs of zero, infinities and NaN stay.

    The rules are those of the vendor's precision-conversion page, read on the binary point.
    """
    mode = RoundMode(mode)
    if mode in NEAREST_EVEN:
        return np.asarray(np.rint(values))
    if mode is RoundMode.FLOOR:
        return np.floor(values)
    if mode is RoundMode.CEIL:
        return np.ceil(values)
    whole = np.trunc(values)
    if mode is RoundMode.TRUNC:
        return whole
    with np.errstate(invalid="ignore"):  # inf - inf
        rest = np.abs(values - whole)  # exact: both have the same exponent or the rest is smaller
        away = rest >= 0.5 if mode is RoundMode.ROUND else (rest > 0) & (np.fmod(whole, 2) == 0)
    return np.where(away, whole + np.copysign(values.dtype.type(1), values), whole)


def round_to_float(
    values: Array, dst: DType, mode: RoundMode | int = RoundMode.RINT, *, saturate: bool = False
) -> Array:
    """Numbers of any type -> the floating-point type `dst` of at most 24 significant bits, rounded once, subnormals
    included.

    A result beyond the largest finite value, were the exponent unbounded, is an infinity in every mode (NaN in
    fp8_e4m3fn, which has none), as the vendor's __float2half_rz and _ro pages have it; with `saturate` (f16, bf16, fp8)
    it is the largest finite value, infinities too, and NaN is 0 (hardware.md 4.1; float32 has no saturating mode).
    """
    dst = np.dtype(dst)
    source = np.asarray(values)
    if not is_floating(source.dtype):
        if dst == F64 and source.dtype.itemsize == 8:
            raise Unsupported(f"rounding {source.dtype.name} to float64 is not simulated; round it to float32")
        source = _integer_as_f64(source)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = _round(source, dst, RoundMode(mode))
        return _saturated(rounded, source, dst) if saturate and dst not in (F32, F64) else rounded


def _round(source: Array, dst: DType, mode: RoundMode) -> Array:
    spec = float_format(dst)
    if _holds(spec, float_format(source.dtype)) or (mode in NEAREST_EVEN and _casts_in_one_step(source.dtype, dst)):
        return source.astype(dst)
    exact = source.astype(F64)
    exponent = np.maximum(np.frexp(exact)[1] - 1, spec.min_exponent) - spec.mantissa_bits
    rounded = np.ldexp(round_to_integer(np.ldexp(exact, -exponent), mode), exponent)
    rounded = np.where(np.abs(rounded) > spec.largest, np.copysign(np.inf, rounded), rounded)
    return rounded.astype(dst)  # exact now


def _holds(wide: FloatFormat, narrow: FloatFormat) -> bool:
    """Whether every value of `narrow` is one of `wide`."""
    return (
        wide.mantissa_bits >= narrow.mantissa_bits
        and wide.min_exponent <= narrow.min_exponent
        and wide.largest >= narrow.largest
    )


def _casts_in_one_step(src: DType, dst: DType) -> bool:
    """Whether astype rounds once: ml_dtypes goes from float64 through float32, which would round twice."""
    return src != F64 or dst in (F32, F16)


def _integer_as_f64(values: Array) -> Array:
    """Integers as float64, those of more than 53 bits rounded to odd there, so that the next rounding is still right.

    Rounding to odd with at least two bits to spare makes a second rounding innocuous (Boldo and Melquiond, 2005).
    """
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        high = values > _EXACT_IN_F64
        large = high if values.dtype.kind == "u" else high | (values < -_EXACT_IN_F64)
        low, sticky = values.dtype.type(_LOW_BITS), values.dtype.type(_STICKY_BIT)
        values = np.where(large & ((values & low) != 0), (values & ~low) | sticky, values)
    return values.astype(F64)


def _saturated(rounded: Array, source: Array, dst: DType) -> Array:
    """Infinities become the largest finite value and NaN becomes 0."""
    wide = source.astype(F64)
    finite = np.isfinite(rounded.astype(F32))
    limit = np.where(np.isnan(wide), 0.0, np.copysign(float_format(dst).largest, wide))
    return np.where(finite, rounded, limit.astype(dst))


def round_to_int(values: Array, dst: DType, mode: RoundMode | int, *, keep_low_bits: bool = False) -> Array:
    """Floating-point `values` -> the integer type `dst` (int4 too), saturating; NaN is 0.

    With `keep_low_bits` (SetSaturationFlag CAST off) what does not fit keeps its low bits instead, infinities still
    give the extreme values: half 257 -> uint8 1 (vendor's Cast page of the register API, table 4).
    """
    dst = np.dtype(dst)
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = values if values.dtype in (F32, F64) else values.astype(F32)
        whole = round_to_integer(wide, mode)
    low, high = integer_range(dst)
    # Powers of two, so exact in float32 where `high` itself is not.
    below, above = whole < float(low), whole >= float(high + 1)
    if keep_low_bits:
        below, above = below & np.isinf(whole), above & np.isinf(whole)
        result = narrow_int(_low_64_bits(whole), dst, keep_low_bits=True)
    else:
        inside = np.where(below | above | np.isnan(whole), 0, whole)
        result = inside.astype(np.int8 if dst == INT4 else dst).astype(dst)
    result = np.where(below, np.array(low).astype(dst), result)
    return np.where(above, np.array(high).astype(dst), result)


def _low_64_bits(whole: Array) -> Array:
    """Integral floats modulo 2**64 as int64 (two's complement); exact, what is not finite is 0."""
    rest = np.fmod(np.where(np.isfinite(whole), whole, 0), 2.0**64)
    rest = np.where(rest >= 2.0**63, rest - 2.0**64, rest)
    return np.where(rest < -(2.0**63), rest + 2.0**64, rest).astype(np.int64)


def narrow_int(values: Array, dst: DType, *, keep_low_bits: bool = False) -> Array:
    """Integers -> the integer type `dst`, saturating, or with `keep_low_bits` cut to its width."""
    dst = np.dtype(dst)
    wide = values.astype(np.int8) if values.dtype == INT4 else values
    low, high = integer_range(dst)
    if not keep_low_bits:
        source_low, source_high = integer_range(wide.dtype)
        wide = np.clip(wide, max(low, source_low), min(high, source_high))
    elif dst == INT4:
        wide = ((wide.astype(np.uint8) & 0xF) ^ 8).astype(np.int8) - 8
    return wide.astype(dst)
