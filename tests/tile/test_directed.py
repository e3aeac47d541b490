"""Rounding as asked, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npuscope.tile import directed, floats

FLOATS = {np.float16: 16, np.float32: 32, np.float64: 64}


def rounded(dtype: Any, mode: str, exact: Fraction, negative_zero: bool = False) -> float:
    """The number of the type that the mode picks for a fraction."""
    nearest = dtype(float(exact)) if dtype is np.float64 else _nearest(dtype, exact)
    if mode == "rn":
        return float(nearest)
    below = nearest if Fraction(float(nearest)) <= exact else np.nextafter(nearest, dtype(-np.inf))
    above = nearest if Fraction(float(nearest)) >= exact else np.nextafter(nearest, dtype(np.inf))
    return float({"rd": below, "ru": above, "rz": above if exact < 0 else below}[mode])


def _nearest(dtype: Any, exact: Fraction) -> Any:
    """To the nearest, halves to even, without a second rounding on the way."""
    guess = dtype(float(exact))
    near = [np.nextafter(guess, dtype(-np.inf)), guess, np.nextafter(guess, dtype(np.inf))]
    bits = np.dtype(f"uint{np.dtype(dtype).itemsize * 8}")
    return min(
        (number for number in near if np.isfinite(number)),
        key=lambda number: (abs(Fraction(float(number)) - exact), int(np.array(number).view(bits)) & 1),
    )


def numbers(dtype: Any) -> st.SearchStrategy[float]:
    """Of middling size, so that results and their errors are normal numbers."""
    size = {np.float16: 30.0, np.float32: 1e9, np.float64: 1e60}[dtype]
    small = {np.float16: 2.0**-3, np.float32: 2.0**-20, np.float64: 2.0**-100}[dtype]
    positive = st.floats(small, size, width=FLOATS[dtype])  # type: ignore[arg-type]
    return positive | positive.map(lambda number: -number)


@pytest.mark.parametrize("mode", directed.MODES)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_arithmetic(mode: str, dtype: Any, data: st.DataObject) -> None:
    a, b, c = (data.draw(numbers(dtype)) for _ in range(3))
    x, y, z = (np.array([value], dtype) for value in (a, b, c))
    exact = [Fraction(value) for value in (a, b, c)]
    cases = {
        "add": (directed.add(mode, x, y), exact[0] + exact[1]),
        "subtract": (directed.subtract(mode, x, y), exact[0] - exact[1]),
        "multiply": (directed.multiply(mode, x, y), exact[0] * exact[1]),
        "divide": (directed.divide(mode, x, y), exact[0] / exact[1]),
        "reciprocal": (directed.reciprocal(mode, x), 1 / exact[0]),
        "multiply_add": (directed.multiply_add(mode, x, y, z), exact[0] * exact[1] + exact[2]),
    }
    for name, (got, want) in cases.items():
        assert float(got[0]) == rounded(dtype, mode, want), name


@pytest.mark.parametrize("mode", directed.MODES)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_square_roots(mode: str, dtype: Any, data: st.DataObject) -> None:
    value = abs(data.draw(numbers(dtype)))
    got = Fraction(float(directed.root(mode, np.array([value], dtype))[0]))
    step = np.nextafter(dtype(float(got)), dtype(np.inf))
    before = np.nextafter(dtype(float(got)), dtype(-np.inf))
    exact = Fraction(value)
    if mode in ("rd", "rz"):
        assert got**2 <= exact < Fraction(float(step)) ** 2
    elif mode == "ru":
        assert Fraction(float(before)) ** 2 < exact <= got**2
    else:
        assert ((Fraction(float(before)) + got) / 2) ** 2 <= exact <= ((Fraction(float(step)) + got) / 2) ** 2


@settings(max_examples=80, deadline=None)
@given(a=numbers(np.float64), b=numbers(np.float64), c=numbers(np.float64))
@example(a=1.0 + 2.0**-52, b=1.0 - 2.0**-53, c=-1.0)
def test_a_fused_sum_rounds_once(a: float, b: float, c: float) -> None:
    got = floats.multiply_add(*(np.array([value]) for value in (a, b, c)))
    assert float(got[0]) == float(Fraction(a) * Fraction(b) + Fraction(c))


def test_a_fused_sum_of_what_is_not_finite() -> None:
    inf, nan = np.array([np.inf, 1e308, np.nan]), np.array([1.0, 1e10, 1.0])
    with np.errstate(all="ignore"):
        got = floats.multiply_add(inf, nan, np.array([-np.inf, 1.0, 1.0]))
    assert np.isnan(got[0]) and got[1] == np.inf and np.isnan(got[2])


@pytest.mark.parametrize("mode", directed.MODES)
@settings(max_examples=50, deadline=None)
@given(value=st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_as_floats(mode: str, value: int) -> None:
    array = np.array([value], np.int64)
    for dtype in (np.float32, np.float64):
        assert float(directed.narrow(np.dtype(dtype), mode, array)[0]) == rounded(dtype, mode, Fraction(value))


@pytest.mark.parametrize(
    "mode,function", [("rn", lambda x: round(x)), ("rz", math.trunc), ("rd", math.floor), ("ru", math.ceil)]
)
@settings(max_examples=30, deadline=None)
@given(
    value=st.floats(-1e20, 1e20)
    | st.sampled_from([math.inf, -math.inf, math.nan, 0.5, -0.5, 2.0**63, -(2.0**63), 2.0**64])
)
def test_floats_as_whole_numbers(mode: str, function: Any, value: float) -> None:
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        if math.isnan(value):
            want = 0
        else:
            want = min(
                max(function(value) if math.isfinite(value) else (10**30 if value > 0 else -(10**30)), limits.min),
                limits.max,
            )
        assert int(directed.to_integer(np.dtype(dtype), mode, np.array([value]))[0]) == want


def test_beyond_the_largest_number() -> None:
    large = np.array([3e38, -3e38], np.float32)
    with np.errstate(all="ignore"):
        assert directed.add("rn", large, large).tolist() == [np.inf, -np.inf]
        assert directed.add("rz", large, large).tolist() == [np.finfo(np.float32).max, np.finfo(np.float32).min]
        assert directed.add("ru", large, large).tolist() == [np.inf, np.finfo(np.float32).min]
        assert directed.narrow(np.dtype(np.float16), "rz", np.array([1e6])).tolist() == [65504.0]
