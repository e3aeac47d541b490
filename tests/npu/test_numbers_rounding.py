"""Rounding to floats against two oracles: a table of every value of the format, and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.errors import Unsupported
from npuscope.npu.numbers import RoundMode, round_to_float, round_to_integer

pytestmark = pytest.mark.filterwarnings("error")  # overflow and NaN are ordinary results

Array = np.ndarray[Any, Any]

F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
# Stored mantissa bits, exponent of the smallest normal, of the largest (IEEE 754, bfloat16, OCP 8-bit formats).
FORMATS = {F16: (10, -14, 15), BF16: (7, -126, 127), F32: (23, -126, 127), E5M2: (2, -14, 15)}


def bits_of(values: Array) -> Array:
    """Bit patterns, every NaN as one."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        return np.where(np.isnan(values), 0, values.view(f"u{values.dtype.itemsize}"))


def awkward_f32(dst: np.dtype[Any], seed: int) -> Array:
    """float32 values near those of `dst`: exact, ties, one step around both, and random bit patterns."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 1 << 8 * dst.itemsize, 20011).astype(f"u{dst.itemsize}")
    with np.errstate(all="ignore"):
        exact = patterns.view(dst).astype(np.float32)
        exact = exact[np.isfinite(exact)]
        following = (np.abs(exact).astype(dst).view(f"u{dst.itemsize}") + 1).astype(f"u{dst.itemsize}").view(dst)
        tie = (np.abs(exact).astype(np.float64) + following.astype(np.float64)) / 2
        tie = np.copysign(tie, exact).astype(np.float32)
        near = [np.nextafter(v, np.float32(to)) for v in (exact, tie) for to in (np.inf, -np.inf)]
    noise = rng.integers(0, 1 << 32, 20011, np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
    return np.concatenate([exact, tie, *near, noise, special])


def round_by_table(values: Array, dst: np.dtype[Any], mode: RoundMode) -> Array:
    """Bit patterns of `values` in `dst`: the neighbours are found in the list of all positive values of the format."""
    unsigned = f"u{dst.itemsize}"
    mantissa_bits, _, max_exponent = FORMATS[dst]
    infinity = int(np.array(np.inf).astype(dst).view(unsigned))
    table = np.arange(infinity + 1).astype(unsigned).view(dst).astype(np.float64)
    table[infinity] = 2.0 ** (max_exponent + 1)  # what would follow, were the exponent unbounded
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = values.astype(np.float64)
    size, negative = np.abs(wide), np.signbit(wide)
    size = np.where(np.isnan(size), 0, np.minimum(size, table[infinity]))
    below = np.minimum(np.searchsorted(table, size, side="right") - 1, infinity - 1)
    lower, upper = table[below], table[below + 1]
    middle, exact = (lower + upper) / 2, size == lower
    if mode in (RoundMode.NONE, RoundMode.RINT):
        up = (size > middle) | ((size == middle) & (below % 2 == 1))
    elif mode is RoundMode.ROUND:
        up = size >= middle
    elif mode is RoundMode.TRUNC:
        up = np.zeros_like(exact)
    elif mode is RoundMode.ODD:
        up = below % 2 == 0
    else:
        up = negative if mode is RoundMode.FLOOR else ~negative
    chosen = np.where(exact, below, below + (up | (size == upper)))  # size == upper: overflow
    patterns = chosen | (negative.astype(np.int64) << (8 * dst.itemsize - 1))
    return np.where(np.isnan(wide), 0, patterns)


def round_by_fraction(value: float, dst: np.dtype[Any], mode: RoundMode) -> float:
    """A finite value in `dst` by exact arithmetic, one at a time."""
    mantissa_bits, min_exponent, max_exponent = FORMATS[dst]
    if value == 0:
        return value
    exact = abs(Fraction(value))
    exponent = max(math.frexp(value)[1] - 1, min_exponent)
    unit = Fraction(2) ** (exponent - mantissa_bits)
    count, rest = divmod(exact, unit)
    half = rest * 2 - unit
    up = {
        RoundMode.NONE: half > 0 or (half == 0 and count % 2 == 1),
        RoundMode.RINT: half > 0 or (half == 0 and count % 2 == 1),
        RoundMode.FLOOR: rest > 0 and value < 0,
        RoundMode.CEIL: rest > 0 and value > 0,
        RoundMode.ROUND: half >= 0,
        RoundMode.TRUNC: False,
        RoundMode.ODD: rest > 0 and count % 2 == 0,
    }[mode]
    result = (count + up) * unit
    size = math.inf if result >= Fraction(2) ** (max_exponent + 1) else float(result)
    return math.copysign(size, value)


@pytest.mark.parametrize("mode", RoundMode)
@pytest.mark.parametrize("dst", [F16, BF16, E5M2])
def test_f32_to_narrow_float_is_exact(dst: np.dtype[Any], mode: RoundMode) -> None:
    values = awkward_f32(dst, seed=2 + mode)
    result = round_to_float(values, dst, mode)
    assert result.dtype == dst
    np.testing.assert_array_equal(bits_of(result), round_by_table(values, dst, mode))


@pytest.mark.parametrize("mode", RoundMode)
@pytest.mark.parametrize(("src", "dst"), [(F16, BF16), (BF16, F16), (F16, F32), (BF16, F32)])
def test_every_16_bit_float_converts_exactly(src: np.dtype[Any], dst: np.dtype[Any], mode: RoundMode) -> None:
    values = np.arange(1 << 16).astype(np.uint16).view(src)
    result = round_to_float(values, dst, mode)
    if dst == F32:
        patterns = np.arange(1 << 16, dtype=np.uint32) << 16  # bfloat16 is the upper half of a float32
        wide = patterns.view(np.float32) if src == BF16 else values.astype(np.float32)
        np.testing.assert_array_equal(bits_of(result), bits_of(wide))
    else:
        np.testing.assert_array_equal(bits_of(result), round_by_table(values, dst, mode))


@pytest.mark.parametrize("mode", RoundMode)
@pytest.mark.parametrize("dst", [F16, BF16, F32])
def test_f64_is_rounded_once(dst: np.dtype[Any], mode: RoundMode) -> None:
    rng = np.random.default_rng(3)
    mantissa_bits, min_exponent, max_exponent = FORMATS[dst]
    exponent = rng.integers(min_exponent - mantissa_bits - 2, max_exponent + 2, 701)
    significand = rng.integers(1 << mantissa_bits, 2 << mantissa_bits, 701).astype(np.float64)
    # Just off a tie: going through float32 would round these to the tie first.
    offsets = rng.choice([0.0, 0.5, 0.5 + 2.0**-25, 0.5 - 2.0**-25, 2.0**-27], 701)
    values = np.ldexp((significand + offsets) * rng.choice([-1, 1], 701), exponent - mantissa_bits)
    expected = [round_by_fraction(value, dst, mode) for value in values.tolist()]
    np.testing.assert_array_equal(round_to_float(values, dst, mode).astype(np.float64), expected)


def test_double_rounding_example() -> None:
    # 1 + 2**-8 is the tie between two bfloat16; the last bit of this one is lost in float32.
    values = np.array([1 + 2.0**-8 + 2.0**-40])
    assert round_to_float(values, BF16).astype(float).tolist() == [1 + 2.0**-7]


@pytest.mark.parametrize("mode", RoundMode)
@pytest.mark.parametrize("src", [np.int64, np.uint64, np.int32])
def test_integers_to_f32_are_exact(src: type, mode: RoundMode) -> None:
    rng = np.random.default_rng(4)
    info = np.iinfo(src)
    values = np.right_shift(rng.integers(info.min, info.max, 501, src, endpoint=True), rng.integers(0, 24, 501, src))
    tie = (1 << 40) + (1 << 16)
    more = [info.min, info.max, 0, 1, 16777217, 16777219]
    more += [tie + i for i in (-1, 0, 1)] if info.bits == 64 else []
    more += [(1 << 62) + (1 << 38) + i for i in (-1, 0, 1)] if info.bits == 64 else []
    values = np.concatenate([values, np.array(more, src)])
    expected = [_round_integer_to_24_bits(value, mode) for value in values.tolist()]
    np.testing.assert_array_equal(round_to_float(values, F32, mode).astype(np.float64), expected)


def _round_integer_to_24_bits(value: int, mode: RoundMode) -> float:
    shift = max(abs(value).bit_length() - 24, 0)
    count, rest = divmod(abs(value), 1 << shift)
    half = 2 * rest - (1 << shift)
    nearest = half > 0 or (half == 0 and count % 2 == 1)
    up = {
        RoundMode.NONE: nearest,
        RoundMode.RINT: nearest,
        RoundMode.FLOOR: rest > 0 and value < 0,
        RoundMode.CEIL: rest > 0 and value > 0,
        RoundMode.ROUND: half >= 0 and rest > 0,
        RoundMode.TRUNC: False,
        RoundMode.ODD: rest > 0 and count % 2 == 0,
    }[mode]
    return math.copysign((count + up) << shift, value)


def test_64_bit_integers_to_f64_are_refused() -> None:
    with pytest.raises(Unsupported, match="int64 to float64"):
        round_to_float(np.array([1], np.int64), np.dtype(np.float64))
    assert round_to_float(np.array([-7], np.int32), np.dtype(np.float64)).tolist() == [-7.0]


@pytest.mark.parametrize("dst", [F16, BF16])
def test_directed_modes_enclose_the_value(dst: np.dtype[Any]) -> None:
    """FLOOR and CEIL are adjacent and on the two sides; numpy's nextafter is the witness (float16), bits for bf16."""
    values = awkward_f32(dst, seed=7)
    values = values[np.isfinite(values)]
    down = round_to_float(values, dst, RoundMode.FLOOR).astype(np.float32)
    up = round_to_float(values, dst, RoundMode.CEIL).astype(np.float32)
    inside = np.isfinite(down) & np.isfinite(up)
    values, down, up = values[inside], down[inside], up[inside]
    assert np.all((down <= values) & (values <= up))
    exact = down == up
    np.testing.assert_array_equal(exact, values.astype(dst).astype(np.float32) == values)
    if dst == F16:
        np.testing.assert_array_equal(np.nextafter(down.astype(dst), F16.type(np.inf))[~exact], up[~exact])


@pytest.mark.parametrize("mode", RoundMode)
def test_overflow_and_saturation(mode: RoundMode) -> None:
    values = np.array([65536, -65536, 1e30, np.inf, -np.inf, np.nan, 65504, -0.0], np.float32)
    expected = [np.inf, -np.inf, np.inf, np.inf, -np.inf, np.nan, 65504, -0.0]
    np.testing.assert_array_equal(round_to_float(values, F16, mode), np.array(expected, np.float16))
    clamped = round_to_float(values, F16, mode, saturate=True)
    np.testing.assert_array_equal(clamped, [65504, -65504, 65504, 65504, -65504, 0, 65504, 0])
    assert np.signbit(clamped[-1])


def test_float32_never_saturates() -> None:
    values = np.array([np.inf, np.nan, 1e300])
    np.testing.assert_array_equal(round_to_float(values, F32, saturate=True), [np.inf, np.nan, np.inf])


def test_fp8_e4m3_has_no_infinity() -> None:
    # OCP 8-bit format: largest 448, 464 is the tie to 448, beyond is NaN.
    values = np.array([448, 464, 464.1, -1e9, np.inf, np.nan, 2.0**-9, 2.0**-10, 2.0**-10 * 1.01], np.float32)
    expected = [448, 448, np.nan, np.nan, np.nan, np.nan, 2.0**-9, 0, 2.0**-9]
    np.testing.assert_array_equal(round_to_float(values, E4M3).astype(np.float32), expected)
    clamped = round_to_float(values, E4M3, saturate=True).astype(np.float32)
    np.testing.assert_array_equal(clamped, [448, 448, 448, -448, 448, 0, 2.0**-9, 0, 2.0**-9])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (RoundMode.NONE, [2, 2, 1, 1, 0, 0, -0.0, -0.0, -1, -1, -2, -2]),
        (RoundMode.RINT, [2, 2, 1, 1, 0, 0, -0.0, -0.0, -1, -1, -2, -2]),
        (RoundMode.FLOOR, [1, 1, 1, 0, 0, 0, -1, -1, -1, -2, -2, -2]),
        (RoundMode.CEIL, [2, 2, 2, 1, 1, 1, -0.0, -0.0, -0.0, -1, -1, -1]),
        (RoundMode.ROUND, [2, 2, 1, 1, 1, 0, -0.0, -1, -1, -1, -2, -2]),
        (RoundMode.TRUNC, [1, 1, 1, 0, 0, 0, -0.0, -0.0, -0.0, -1, -1, -1]),
        (RoundMode.ODD, [1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1]),
    ],
)
def test_round_to_integer(mode: RoundMode, expected: list[float]) -> None:
    # Columns of the vendor's scalar_conv page (1.8, 1.5 … -1.8) by the definitions of the precision-conversion page.
    values = np.array([1.8, 1.5, 1.2, 0.8, 0.5, 0.2, -0.2, -0.5, -0.8, -1.2, -1.5, -1.8], np.float32)
    result = round_to_integer(values, mode)
    assert result.dtype == F32
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(values))


@pytest.mark.parametrize("mode", RoundMode)
def test_round_to_integer_leaves_what_has_no_fraction(mode: RoundMode) -> None:
    values = np.array([0.0, -0.0, 3.0, -4.0, 8388609.0, 3.4e38, np.inf, -np.inf, np.nan], np.float32)
    result = round_to_integer(values, mode)
    np.testing.assert_array_equal(result, values)
    np.testing.assert_array_equal(np.signbit(result[:2]), [False, True])
    odd = round_to_integer(np.array([0.49999997], np.float32), mode)
    assert odd.tolist() == [1.0 if mode in (RoundMode.CEIL, RoundMode.ODD) else 0.0]
