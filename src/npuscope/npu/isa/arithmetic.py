"""What vector instructions compute, lane by lane, for each combination of element types.

Every entry is a pair of functions of whole arrays: with the saturation flag clear (IEEE special values, integers wrap)
and set. half is rounded after every step, as the vendor's published results for FusedMulAdd and MulAddRelu show: their
product is a half before it is added. Exp, Ln and Rsqrt are correctly rounded, which the device only approximates.

Sources: hardware.md 4.1; the vendor's boundary-value page of the memory-vector API (special values, intermediate
saturation); the page of each instruction (types).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from npuscope.npu import numbers
from npuscope.npu.numbers import RoundMode, convert, round_to_float
from npuscope.npu.numbers.dtypes import BF16, F16, F32, F64, Array, DType

Compute = Callable[..., Any]
Types = tuple[DType, ...]
"""Element types of the destination and of each source tensor."""

I8, I16, I32, I64 = (np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64))
U8, U16, U32, U64 = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64))
NARROW_AND_LONG = (I8, U8, I64, U64)
"""Types that NPU arch 3510 takes in the count forms of many instructions."""


class Pair(NamedTuple):
    """A computation with the saturation flag clear and set; indexed by the flag."""

    plain: Compute
    saturating: Compute


Table = dict[Types, Pair]

_SATURATING_INTEGERS: dict[Any, Callable[..., Array]] = {
    np.add: numbers.add,
    np.subtract: numbers.sub,
    np.multiply: numbers.mul,
}


def saturated(compute: Compute) -> Compute:
    """`compute` with infinities of its half or bfloat16 result at the largest finite value and NaN at 0."""

    def clamped(*values: Any) -> Array:
        result = compute(*values)
        return round_to_float(result, result.dtype, RoundMode.RINT, saturate=True)

    return clamped


def pair(compute: Compute, dtype: DType) -> Pair:
    """`compute` for operands of `dtype` and what it does with saturation: only half, bfloat16 and integers have it."""
    if dtype in (F16, BF16):
        return Pair(compute, saturated(compute))
    whole = _SATURATING_INTEGERS.get(compute) if isinstance(compute, np.ufunc) else None
    if whole is not None and dtype.kind in "iu" and dtype.itemsize < 8:
        return Pair(compute, partial(whole, saturate=True))
    return Pair(compute, compute)


def same(compute: Compute, sources: int, dtypes: Iterable[DType]) -> Table:
    """A table of `compute` on `sources` source tensors of the destination's type."""
    return {(dtype,) * (sources + 1): pair(compute, dtype) for dtype in dtypes}


# -- one source ------------------------------------------------------------------------------------------------------


def _half_function(compute: Compute) -> Compute:
    """A function of half as a table of its 65536 values, computed in float64 and rounded once."""

    @lru_cache(maxsize=1)
    def every() -> Array:
        with np.errstate(all="ignore"):
            values = np.arange(1 << 16, dtype=np.uint16).view(F16)
            return np.asarray(compute(values.astype(F64))).astype(F16)

    def looked_up(values: Array) -> Array:
        return np.take(every(), values.view(np.uint16))

    return looked_up


def transcendental(compute: Compute) -> Table:
    """A function of one half or float operand, correctly rounded."""

    def of_float(values: Array) -> Array:
        return np.asarray(compute(values.astype(F64))).astype(F32)

    return {(F16, F16): pair(_half_function(compute), F16), (F32, F32): pair(of_float, F32)}


def reciprocal_root(values: Array) -> Array:
    """1 / sqrt(x), -inf for -0."""
    return 1.0 / np.sqrt(values)


def relu(values: Array) -> Array:
    """max(x, 0); NaN stays and -0 becomes 0."""
    zero = values.dtype.type(0)
    positive = np.maximum(values, zero)
    return positive if values.dtype.kind in "iu" else positive + zero


# -- two sources -----------------------------------------------------------------------------------------------------


def relu_pair(step: Any, dtype: DType) -> Pair:
    """relu of `step` (np.add or np.subtract), which saturates before it where the flag is set."""
    first = pair(step, dtype)
    return Pair(*(_followed_by_relu(compute) for compute in first))


def _followed_by_relu(compute: Compute) -> Compute:
    return lambda a, b: relu(compute(a, b))


def _multiply_add(product: Compute, total: Compute, addend_last: bool, rectified: bool) -> Compute:
    def compute(a: Array, b: Array, old: Array) -> Array:
        result = total(product(a, b), old) if addend_last else total(product(a, old), b)
        return relu(result) if rectified else result

    return compute


def multiply_add(dtypes: Iterable[DType], *, addend_last: bool, rectified: bool = False) -> Table:
    """``src0 * src1 + dst`` with `addend_last` (MulAddDst), else ``src0 * dst + src1`` (FusedMulAdd, MulAddRelu).

    The product is rounded to the element type, and saturated in it, before the addition.
    """
    table: Table = {}
    for dtype in dtypes:
        product, total = pair(np.multiply, dtype), pair(np.add, dtype)
        table[(dtype,) * 3] = Pair(
            *(_multiply_add(*step, addend_last, rectified) for step in zip(product, total, strict=True))
        )
    return table


def widening_multiply_add(a: Array, b: Any, old: Array) -> Array:
    """float ``old + a * b`` for half `a` and `b`: MulAddDst and Axpy of two types."""
    return np.asarray(a.astype(F32) * np.asarray(b).astype(F32) + old)


def mul_cast(dst: DType) -> Pair:
    """half product rounded to half, then to an 8-bit integer `dst`, to nearest even and saturating."""

    def compute(a: Array, b: Array) -> Array:
        return convert(a * b, dst, RoundMode.RINT)

    return Pair(compute, compute)


def relu_cast(step: Any, dst: DType, src: DType) -> Pair:
    """relu of `step` rounded to `src`, then converted to `dst`; int16 saturates in the step whatever the flag says."""
    first = pair(step, src)
    if src == I16:
        first = Pair(first.saturating, first.saturating)
    return Pair(
        lambda a, b: convert(relu(first.plain(a, b)), dst, RoundMode.RINT),
        lambda a, b: convert(relu(first.saturating(a, b)), dst, RoundMode.RINT, saturate=True),
    )


def add_dequantise_relu(saturate: bool) -> Compute:
    """relu((a + b) * scale) as half, for int32 sums and the half scale of SetDeqScale."""

    def compute(a: Array, b: Array, scale: Any) -> Array:
        return relu(numbers.cast_dequant_f16(numbers.add(a, b, saturate=saturate), scale, saturate=saturate))

    return compute


def abs_sub(a: Array, b: Array) -> Array:
    """abs(a - b)."""
    return np.abs(a - b)


def exp_sub(dst: DType) -> Compute:
    """exp(a - b), the difference taken in float, rounded to `dst`."""

    def compute(a: Array, b: Array) -> Array:
        return np.exp((a.astype(F32) - b.astype(F32)).astype(F64)).astype(dst)

    return compute


def leaky_relu(values: Array, slope: Any) -> Array:
    """x where it is positive, else x * slope; -0 counts as negative (boundary-value page, LeakyRelu; Prelu)."""
    return np.where(np.signbit(values), values * slope, values)


def axpy(values: Array, old: Array, scalar: Any) -> Array:
    """``scalar * x + old``, each step rounded to the element type."""
    return np.asarray(values * scalar + old)


def saturating_axpy(values: Array, old: Array, scalar: Any) -> Array:
    """`axpy` of half or bfloat16 with the product saturated before the addition."""
    product = saturated(np.multiply)(values, scalar)
    return np.asarray(saturated(np.add)(product, old))
