"""The special functions against Python's own and against published values and identities."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from npuscope.ascendc.adv.special_functions import digamma, erf, erfc, lgamma

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the machine silences numpy for all kernels

EULER = 0.5772156649015328606
"""Euler's constant (DLMF 5.2.3)."""


def python(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    return np.array([function(value) for value in x.tolist()])


def test_erf() -> None:
    x = np.concatenate([np.linspace(-6, 6, 4001), [0.46875, -0.46875, 4.0, -4.0, 1e-300, 5e-324, 30.0]])
    np.testing.assert_allclose(erf(x), python(math.erf, x), rtol=1e-15, atol=0)


def test_erfc() -> None:
    x = np.concatenate([np.linspace(-6, 26, 6001), [0.46875, 4.0, 26.5]])
    np.testing.assert_allclose(erfc(x), python(math.erfc, x), rtol=4e-14, atol=0)


def test_error_functions_of_special_values() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0])
    np.testing.assert_array_equal(erf(x), [1, -1, np.nan, 0])
    np.testing.assert_array_equal(erfc(x), [0, 2, np.nan, 1])
    assert np.signbit(erf(np.array([-0.0])))[0]


def test_lgamma() -> None:
    x = np.concatenate([np.linspace(-20.3, 40, 5003), np.geomspace(1e-300, 1e300, 401), -np.geomspace(1e-300, 0.5, 99)])
    expected = python(math.lgamma, x)
    np.testing.assert_allclose(lgamma(x), expected, rtol=5e-10, atol=1e-13)  # float32 is spaced 6e-8 apart


def test_lgamma_of_whole_and_special_values() -> None:
    whole = np.arange(1.0, 21.0)
    expected = np.log([float(math.factorial(int(value) - 1)) for value in whole])
    np.testing.assert_allclose(lgamma(whole), expected, rtol=1e-14, atol=1e-14)
    x = np.array([0.0, -0.0, -1.0, -7.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(lgamma(x), [np.inf] * 6 + [np.nan])


@pytest.mark.parametrize(
    ("x", "value"),
    [
        (1.0, -EULER),
        (0.5, -EULER - 2 * math.log(2)),
        (0.25, -EULER - math.pi / 2 - 3 * math.log(2)),
        (1 / 3, -EULER - math.pi / (2 * math.sqrt(3)) - 1.5 * math.log(3)),
        (5.0, -EULER + 1 + 1 / 2 + 1 / 3 + 1 / 4),
        (-0.5, 2 - EULER - 2 * math.log(2)),
    ],
)
def test_digamma_of_fractions(x: float, value: float) -> None:
    """DLMF 5.4.11 to 5.4.16."""
    assert digamma(np.array([x]))[0] == pytest.approx(value, rel=1e-13)


def test_digamma_recurrence_and_reflection() -> None:
    """DLMF 5.5.2 and 5.5.4."""
    x = np.linspace(0.013, 60, 3001)
    np.testing.assert_allclose(digamma(x + 1), digamma(x) + 1 / x, rtol=1e-11, atol=1e-12)
    part = np.linspace(0.03, 0.97, 501)
    np.testing.assert_allclose(digamma(1 - part), digamma(part) + np.pi / np.tan(np.pi * part), rtol=1e-11, atol=1e-11)


def test_digamma_is_the_slope_of_lgamma() -> None:
    x = np.linspace(-5.9, 30, 400)
    x = x[np.abs(x - np.rint(x)) > 0.05]
    step = 1e-5
    slope = (lgamma(x + step) - lgamma(x - step)) / (2 * step)
    np.testing.assert_allclose(digamma(x), slope, rtol=1e-5, atol=1e-5)


def test_digamma_of_special_values() -> None:
    x = np.array([-1.0, -6.0, np.inf, np.nan])
    np.testing.assert_array_equal(digamma(x), [np.nan, np.nan, np.inf, np.nan])


@pytest.mark.parametrize("function", [erf, erfc, lgamma, digamma])
def test_shapes_are_kept(function: Callable[[np.ndarray], np.ndarray]) -> None:
    assert function(np.ones((3, 2))).shape == (3, 2)
    assert function(np.ones(0)).shape == (0,)
