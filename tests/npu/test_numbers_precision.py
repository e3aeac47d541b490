from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from npuscope.npu.numbers import compute_in_f32

pytestmark = pytest.mark.filterwarnings("error")

BF16 = ml_dtypes.bfloat16


def test_half_is_rounded_once() -> None:
    # 2048 + 1 is a tie in half; adding in half step by step stays at 2048.
    a, b = np.array([2048.0], np.float16), np.array([1.0], np.float16)
    assert compute_in_f32(lambda x, y: x + y + y, a, b).tolist() == [2050.0]
    assert compute_in_f32(lambda x, y: (x + y) - x, a, b).tolist() == [1.0]


@pytest.mark.parametrize("function", [np.exp, np.sqrt, np.log, np.reciprocal, np.tanh])
def test_special_functions_of_every_half(function: np.ufunc) -> None:
    values = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    result = compute_in_f32(function, values)
    assert result.dtype == np.float16
    with np.errstate(all="ignore"):
        exact = function(values.astype(np.float64))
        # float32 is off by few units in the 24th bit: the half may differ only where the exact value is next to a tie.
        low, high = ((exact * factor).astype(np.float16) for factor in (1 - 2.0**-21, 1 + 2.0**-21))
    with np.errstate(invalid="ignore"):
        inside = (np.minimum(low, high) <= result) & (result <= np.maximum(low, high))
    assert np.all(inside | (np.isnan(result) & np.isnan(exact)))
    # The vendor's boundary-value tables.
    at = {name: result[np.array([value], np.float16).view(np.uint16)[0]] for name, value in (("0", 0.0), ("-0", -0.0))}
    if function is np.reciprocal:
        assert (at["0"], at["-0"]) == (np.inf, -np.inf)
    if function is np.log:
        assert (at["0"], at["-0"]) == (-np.inf, -np.inf)


def test_bfloat16_and_scalars() -> None:
    values = np.array([1.0, 3.0, -2.5], BF16)
    result = compute_in_f32(lambda x, y: x * y, values, 1 / 3)
    assert result.dtype == np.dtype(BF16)
    expected = (values.astype(np.float32) * np.float32(1 / 3)).astype(BF16)
    assert result.tolist() == expected.tolist()


def test_float_is_computed_as_it_is() -> None:
    values = np.array([1.0, 1e38], np.float32)
    result = compute_in_f32(lambda x: x * 10, values, saturate=True)
    assert result.dtype == np.float32
    assert result.tolist() == [10.0, np.inf]


def test_saturation() -> None:
    # The vendor's boundary-value tables, half: exp(65504), ln(0), sqrt(-inf).
    values = np.array([65504.0, 0.0, -np.inf], np.float16)
    assert compute_in_f32(np.exp, values[:1]).tolist() == [np.inf]
    assert compute_in_f32(np.exp, values[:1], saturate=True).tolist() == [65504.0]
    assert compute_in_f32(np.log, values[1:2], saturate=True).tolist() == [-65504.0]
    assert compute_in_f32(np.sqrt, values[2:], saturate=True).tolist() == [0.0]


def test_types_are_checked() -> None:
    half, bfloat = np.zeros(2, np.float16), np.zeros(2, BF16)
    with pytest.raises(ValueError, match="bfloat16_t, half"):
        compute_in_f32(np.add, half, bfloat)
    with pytest.raises(ValueError, match="int32_t"):
        compute_in_f32(np.exp, np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="none"):
        compute_in_f32(np.exp, 1.0)
