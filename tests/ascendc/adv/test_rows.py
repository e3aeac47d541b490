"""Softmax over rows, per-tensor quantisation: against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct

SHAPE_INFO = "!ascendc.shape_info"


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (5, 64), (3, 48)])
def test_softmax(device: Any, rows: int, columns: int, dtype: Any) -> None:
    """Each row; the sum and the maximum fill one block of 32 bytes a row."""
    x = (np.random.default_rng(2).standard_normal((rows, columns)) * 3).astype(dtype)
    lanes = 32 // np.dtype(dtype).itemsize
    source, target = device.local(x), device.local(np.zeros((rows, columns), dtype))
    total, largest = (device.local(np.zeros((rows, lanes), dtype)) for _ in range(2))
    info = construct("shape_info", SHAPE_INFO, 2, [rows, columns], 0)
    for tensor in (source, target):
        device.run("local_tensor.set_shape_info", tensor, info)
    tiling = construct("softmax_tiling", "!ascendc.softmax_tiling")
    device.run("softmax", target, total, largest, source, None, tiling, None)
    wide = x.astype(np.float64)
    peak = wide.max(axis=1, keepdims=True)
    powers = np.exp(wide - peak)
    tolerance = 2e-6 if dtype is np.float32 else 2e-3
    result = device.values(target).reshape(rows, columns).astype(np.float64)
    np.testing.assert_allclose(result, powers / powers.sum(axis=1, keepdims=True), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(device.values(largest).reshape(rows, lanes), np.repeat(peak.astype(dtype), lanes, 1))
    sums = device.values(total).reshape(rows, lanes).astype(np.float64)
    np.testing.assert_allclose(sums, np.repeat(powers.sum(axis=1, keepdims=True), lanes, 1), rtol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_quant(device: Any, dtype: Any) -> None:
    """round(x * scale + offset), saturated to int8; 77 of 96 elements."""
    x = np.linspace(-90, 90, 96).astype(dtype)
    source, target = device.local(x), device.local(np.full(96, 7, np.int8))
    device.run("quant", target, source, 2.0, 1.0, 77, None, None)
    exact = np.clip(np.rint(x.astype(np.float64) * 2.0 + 1.0), -128, 127)
    result = device.values(target)
    assert np.abs(result[:77].astype(int) - exact[:77]).max() <= 1
    assert (result[77:] == 7).all()
