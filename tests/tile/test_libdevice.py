"""libdevice's functions against mpmath and plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.tile.libdevice import FUNCTIONS

mpmath = pytest.importorskip("mpmath")

USUAL = [-3.7, -1.0, -0.3, 0.0, 0.25, 0.5, 1.0, 2.0, 2.5, 7.3]
UNIT = [-0.99, -0.5, -0.1, 0.0, 0.1, 0.7, 0.99]
ABOVE = [0.01, 0.3, 0.5, 1.0, 1.7, 2.0, 9.5, 30.0]
SHARE = [0.001, 0.1, 0.5, 0.77, 0.999]


def _ndtri(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


REAL: dict[str, tuple[list[float], Callable[[Any], Any]]] = {
    "acos": (UNIT, mpmath.acos), "acosh": ([1.0, 1.5, 40.0], mpmath.acosh), "asin": (UNIT, mpmath.asin), "asinh": (USUAL, mpmath.asinh), "atan": (USUAL, mpmath.atan),
    "atanh": (UNIT, mpmath.atanh), "cbrt": (ABOVE, mpmath.cbrt), "ceil": (USUAL, mpmath.ceil), "cos": (USUAL, mpmath.cos), "cosh": (USUAL, mpmath.cosh),
    "cospi": (USUAL, mpmath.cospi), "cyl_bessel_i0": (USUAL, lambda x: mpmath.besseli(0, x)), "cyl_bessel_i1": (USUAL, lambda x: mpmath.besseli(1, x)), "erf": (USUAL, mpmath.erf),
    "erfc": (USUAL, mpmath.erfc), "erfcinv": (SHARE, lambda p: mpmath.erfinv(1 - p)), "erfcx": (USUAL, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)), "erfinv": (UNIT, mpmath.erfinv),
    "exp": (USUAL, mpmath.exp), "exp10": (USUAL, lambda x: mpmath.mpf(10) ** x), "exp2": (USUAL, lambda x: mpmath.mpf(2) ** x), "expm1": (USUAL, mpmath.expm1), "fabs": (USUAL, abs),
    "floor": (USUAL, mpmath.floor), "j0": (USUAL, lambda x: mpmath.besselj(0, x)), "j1": (USUAL, lambda x: mpmath.besselj(1, x)), "lgamma": (ABOVE, mpmath.loggamma), "log": (ABOVE, mpmath.log),
    "log10": (ABOVE, mpmath.log10), "log1p": (ABOVE, mpmath.log1p), "log2": (ABOVE, lambda x: mpmath.log(x, 2)), "nearbyint": (USUAL, mpmath.nint), "rint": (USUAL, mpmath.nint),
    "normcdf": (USUAL, mpmath.ncdf), "normcdfinv": (SHARE, _ndtri), "rcbrt": (ABOVE, lambda x: 1 / mpmath.cbrt(x)), "rsqrt": (ABOVE, lambda x: 1 / mpmath.sqrt(x)), "sin": (USUAL, mpmath.sin),
    "sinh": (USUAL, mpmath.sinh), "sinpi": (USUAL, mpmath.sinpi), "sqrt": (ABOVE, mpmath.sqrt), "tan": (USUAL, mpmath.tan), "tanh": (USUAL, mpmath.tanh),
    "tgamma": ([-2.5, -0.3, *ABOVE], mpmath.gamma), "trunc": (USUAL, lambda x: mpmath.floor(x) if x > 0 else mpmath.ceil(x)), "y0": (ABOVE, lambda x: mpmath.bessely(0, x)),
    "y1": (ABOVE, lambda x: mpmath.bessely(1, x)), "round": (USUAL, lambda x: mpmath.sign(x) * mpmath.floor(abs(x) + 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_functions_of_one_real_number(name: str) -> None:
    places, exact = REAL[name]
    close = 1e-8 if name in ("y0", "y1") else 3e-12
    for dtype, suffix, tolerance in ((np.float64, "", close), (np.float32, "f", 4e-7)):
        values = np.array(places, dtype)
        got = FUNCTIONS[name + suffix](values)
        assert got.dtype == dtype
        want = [float(exact(mpmath.mpf(float(value)))) for value in values]
        np.testing.assert_allclose(got.astype(float), want, rtol=tolerance, atol=tolerance)


PAIRS = [(1.5, 2.0), (-1.5, 2.0), (7.25, -2.0), (0.3, 0.7), (-8.0, 3.0), (5.0, 2.0), (3.0, 2.0)]
TWO: dict[str, Callable[[float, float], float]] = {
    "atan2": math.atan2, "copysign": math.copysign, "fmod": math.fmod, "hypot": math.hypot, "remainder": math.remainder, "fdim": lambda a, b: max(a - b, 0.0),
    "nextafter": math.nextafter, "rhypot": lambda a, b: 1 / math.hypot(a, b),
}  # fmt: skip


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_real_numbers(name: str) -> None:
    a, b = (np.array(column) for column in zip(*PAIRS, strict=True))
    np.testing.assert_allclose(FUNCTIONS[name](a, b), [TWO[name](*pair) for pair in PAIRS], rtol=1e-15)


def test_powers_scales_and_fused_sums() -> None:
    x, n = np.array([1.5, 2.0, -3.0]), np.array([3, -2, 5], np.int32)
    assert FUNCTIONS["powi"](x, n).tolist() == [3.375, 0.25, -243.0]
    assert FUNCTIONS["pow"](np.array([2.0]), np.array([0.5])).tolist() == [2**0.5]
    assert FUNCTIONS["ldexp"](x, n).tolist() == [12.0, 0.5, -96.0] == FUNCTIONS["scalbn"](x, n).tolist()
    assert FUNCTIONS["fma"](x, x, x).tolist() == [3.75, 6.0, 6.0]
    assert FUNCTIONS["norm3d"](*(np.array([v]) for v in (2.0, 3.0, 6.0))).tolist() == [7.0]
    assert FUNCTIONS["norm4d"](*(np.array([v]) for v in (1e300, 1e300, 1e300, 1e300))).tolist() == [2e300]
    assert FUNCTIONS["rnorm3df"](*(np.array([v], np.float32) for v in (0.0, 3.0, 4.0))).tolist() == [np.float32(0.2)]


def test_bessel_functions_of_any_order() -> None:
    orders = np.array([0, 1, 2, 5, 12, 3, 40, 3, 90], np.int32)
    places = np.array([0.5, -2.0, 3.0, 20.0, 4.0, 0.0, 30.0, -200.0, 60.0])
    want = [float(mpmath.besselj(int(n), float(x))) for n, x in zip(orders, places, strict=True)]
    np.testing.assert_allclose(FUNCTIONS["jn"](orders, places), want, rtol=1e-8, atol=1e-300)
    orders = np.array([0, 1, 2, 5, 12, 3, 40], np.int32)
    places = np.array([0.5, 2.0, 3.0, 20.0, 4.0, 1.0, 30.0])
    want = [float(mpmath.bessely(int(n), float(x))) for n, x in zip(orders, places, strict=True)]
    np.testing.assert_allclose(FUNCTIONS["yn"](orders, places), want, rtol=1e-8)


def test_exponents() -> None:
    x = np.array([8.0, 0.3, 0.0, np.inf, np.nan])
    np.testing.assert_array_equal(FUNCTIONS["logb"](x), [3.0, -2.0, -np.inf, np.inf, np.nan])
    assert FUNCTIONS["ilogb"](x).tolist() == [3, -2, -(2**31), 2**31 - 1, -(2**31)]


def test_questions_about_floats() -> None:
    x = np.array([1.0, -0.0, np.inf, np.nan], np.float32)
    assert [FUNCTIONS[name](x).tolist() for name in ("isnanf", "isinff", "finitef", "signbitf")] == [
        [0, 0, 0, 1],
        [0, 0, 1, 0],
        [1, 1, 0, 0],
        [0, 1, 0, 0],
    ]
    assert FUNCTIONS["saturatef"](np.array([-1.0, 0.5, 7.0, np.nan])).tolist() == [0, 0.5, 1, 0]


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64).astype(np.int32)


def test_bits() -> None:
    x = i32(0, 1, 0x00F0, -1)
    assert FUNCTIONS["clz"](x).tolist() == [32, 31, 24, 0]
    assert FUNCTIONS["ffs"](x).tolist() == [0, 1, 5, 1]
    assert FUNCTIONS["popc"](x).tolist() == [0, 1, 4, 32]
    assert FUNCTIONS["brev"](i32(1, 6)).tolist() == [-(2**31), 0x60000000]
    y = np.array([1 << 40, -1])
    assert (
        FUNCTIONS["clzll"](y).tolist() == [23, 0]
        and FUNCTIONS["popcll"](y).tolist() == [1, 64]
        and FUNCTIONS["ffsll"](y).tolist() == [41, 1]
    )
    assert FUNCTIONS["brevll"](np.array([2])).tolist() == [1 << 62]
    assert FUNCTIONS["byte_perm"](i32(0x33221100), i32(0x77665544), i32(0x7610)).tolist() == [0x77661100]


def test_whole_numbers() -> None:
    a, b = i32(-(2**31), 2**31 - 1, -7), i32(2**31 - 1, 2**31 - 1, 3)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert FUNCTIONS["mulhi"](a, b).tolist() == [(x * y) >> 32 for x, y in pairs]
    assert FUNCTIONS["mul64hi"](a.astype(np.int64) << 20, b.astype(np.int64) << 20).tolist() == [
        ((x << 20) * (y << 20)) >> 64 for x, y in pairs
    ]
    assert FUNCTIONS["hadd"](a, b).tolist() == [(x + y) >> 1 for x, y in pairs]
    assert FUNCTIONS["rhadd"](a, b).tolist() == [(x + y + 1) >> 1 for x, y in pairs]
    assert FUNCTIONS["uhadd"](i32(-1), i32(-3)).tolist() == [(2**32 - 1 + 2**32 - 3) >> 1]
    assert FUNCTIONS["sad"](i32(-5, 9), i32(7, 2), i32(1, 1)).tolist() == [13, 8]
    assert FUNCTIONS["usad"](i32(-1), i32(1), i32(0)).tolist() == [2**32 - 2]
    assert FUNCTIONS["mul24"](i32(0x7FFFFF, -3), i32(2, 5)).tolist() == [0xFFFFFE, -15]
    assert FUNCTIONS["umul24"](i32(-1), i32(2)).tolist() == [0x1FFFFFE]


def test_words_of_doubles() -> None:
    x = np.array([1.0, -2.5])
    high, low = FUNCTIONS["double2hiint"](x), FUNCTIONS["double2loint"](x)
    assert high.tolist()[0] == 0x3FF00000
    assert FUNCTIONS["hiloint2double"](high, low).tolist() == x.tolist()
    assert FUNCTIONS["longlong_as_double"](FUNCTIONS["double_as_longlong"](x)).tolist() == x.tolist()
    assert FUNCTIONS["int_as_float"](FUNCTIONS["float_as_int"](np.array([1.5], np.float32))).tolist() == [1.5]
    np.testing.assert_allclose(FUNCTIONS["rcp64h"](x), 1 / x, rtol=1e-6)


def test_conversions_without_a_sign() -> None:
    assert FUNCTIONS["uint2double_rn"](i32(-1)).tolist() == [2.0**32 - 1]
    assert FUNCTIONS["int2float_rd"](i32(2**24 + 1)).tolist() == [2.0**24]
    assert FUNCTIONS["ull2float_ru"](np.array([-1])).tolist() == [2.0**64]
    assert FUNCTIONS["double2uint_rz"](np.array([3e9, -1.0])).tolist() == [3000000000, 0]
    assert FUNCTIONS["double2float_rz"](np.array([0.1])).tolist() == [np.nextafter(np.float32(0.1), np.float32(0))]


def test_rounding_to_whole_numbers() -> None:
    x = np.array([0.5, 1.5, -2.5, 2.4])
    assert FUNCTIONS["llrint"](x).tolist() == [0, 2, -2, 2] and FUNCTIONS["llround"](x).tolist() == [1, 2, -3, 2]
