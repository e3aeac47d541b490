"""The math functions of the adv layer against Python's math module and numpy, over odd lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "acos": (math.acos, -1, 1), "acosh": (math.acosh, 1, 50), "asin": (math.asin, -1, 1), "asinh": (math.asinh, -9, 9),
    "atan": (math.atan, -20, 20), "atanh": (math.atanh, -0.99, 0.99), "ceil": (math.ceil, -9, 9),
    "cos": (math.cos, -30, 30), "cosh": (math.cosh, -8, 8), "erf": (math.erf, -4, 4), "erfc": (math.erfc, -3, 4),
    "floor": (math.floor, -9, 9), "lgamma": (math.lgamma, 0.1, 30), "log": (math.log, 0.01, 100),
    "sin": (math.sin, -30, 30), "sinh": (math.sinh, -8, 8), "tan": (math.tan, -1.5, 1.5),
    "tanh": (math.tanh, -9, 9), "trunc": (math.trunc, -9, 9),
    "frac": (lambda x: x - math.trunc(x), -9, 9), "sign": (lambda x: (x > 0) - (x < 0), -9, 9),
    "round": (round, -9, 9),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(device: Any, name: str, dtype: Any) -> None:
    """77 of 100 elements; the rest keeps its content."""
    function, low, high = FUNCTIONS[name]
    x = np.random.default_rng(1).uniform(low, high, 100).astype(dtype)
    x = np.clip(x, dtype(low), dtype(high))
    source, target = device.local(x), device.local(np.full(100, 5, dtype))
    device.run(name, target, source, None, 77, 0)
    expected = np.array([function(float(value)) for value in x[:77]])
    tolerance = 2e-6 if dtype is np.float32 else 1e-3
    result = device.values(target)
    np.testing.assert_allclose(result[:77].astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    assert (result[77:] == 5).all()
