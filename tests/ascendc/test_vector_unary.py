"""Vector instructions with one source tensor, against numpy in float64 and the vendor's boundary values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.trace.schema import Role

F16, F32, I16, I32, U16 = np.float16, np.float32, np.int16, np.int32, np.uint16
EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "abs": (np.abs, (F16, F32)),
    "exp": (np.exp, (F16, F32)),
    "ln": (np.log, (F16, F32)),
    "not": (np.invert, (I16, U16)),
    "reciprocal": (lambda x: 1 / x, (F16, F32)),
    "relu": (lambda x: np.maximum(x, 0), (F16, F32, I32)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (F16, F32)),
    "sqrt": (np.sqrt, (F16, F32)),
}
CASES = [(name, dtype) for name, (_, dtypes) in EXACT.items() for dtype in dtypes]
POSITIVE = ("ln", "rsqrt", "sqrt")


def values(name: str, dtype: Any, size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size, dtype, endpoint=True)
    made = rng.normal(0, 4, size).astype(dtype)
    return np.abs(made) + dtype(0.01) if name in POSITIVE else made


def expected(name: str, x: np.ndarray) -> np.ndarray:
    """The function in float64, rounded once; integers as they are."""
    function = EXACT[name][0]
    if x.dtype.kind in "iu":
        return np.asarray(function(x)).astype(x.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def params(dst: tuple[int, int] = (1, 8), src: tuple[int, int] = (1, 8)) -> Any:
    return construct("unary_repeat_params", "", dst[0], src[0], dst[1], src[1])


@pytest.mark.parametrize(("name", "dtype"), CASES)
@pytest.mark.parametrize("count", [1, 63, 128, 333])
def test_count_form(device: Any, name: str, dtype: Any, count: int) -> None:
    x = values(name, dtype, 333)
    src, dst = device.local(x), device.local(np.zeros(333, dtype))
    device.run(f"{name}_l2", dst, src, count)
    got = device.values(dst)
    assert np.array_equal(got[:count], expected(name, x)[:count])
    assert not got[count:].any()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_masked_and_strided_repeats(device: Any, name: str, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    x = values(name, dtype, 5 * lanes)
    src, dst = device.local(x), device.local(np.zeros(3 * lanes, dtype))
    device.run(f"{name}_l0", dst, src, 21, 3, params((1, 8), (1, 16)), is_set_mask=True)
    got = device.values(dst).reshape(3, lanes)
    assert np.array_equal(got[:, :21], expected(name, x.reshape(5, lanes)[::2, :21]))
    assert not got[:, 21:].any()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_bit_masks_in_place(device: Any, name: str, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    words = [0xAAAA_AAAA_AAAA_AAAA] * (lanes // 64)
    x = values(name, dtype, 2 * lanes)
    src = device.local(x)
    device.run(f"{name}_l1", src, src, words, 2, params(), is_set_mask=True)
    assert np.array_equal(device.values(src), np.where(np.arange(2 * lanes) % 2, expected(name, x), x))


def test_counter_mode(device: Any) -> None:
    x = values("exp", F32, 150)
    src, dst = device.local(x), device.local(np.zeros(150, F32))
    device.run("set_mask_count")
    device.run("exp_l1", dst, src, [140, 0], 1, params(), is_set_mask=True)
    assert np.array_equal(device.values(dst), np.where(np.arange(150) < 140, expected("exp", x), 0).astype(F32))


BOUNDARIES = [
    ("exp", F16, -65504, 0, 0), ("exp", F16, 65504, np.inf, 65504), ("exp", F16, np.nan, np.nan, 0),
    ("exp", F16, -np.inf, 0, 0), ("exp", F32, np.inf, np.inf, np.inf), ("exp", F32, -0.0, 1, 1),
    ("ln", F16, -65504, np.nan, 0), ("ln", F16, 65504, 11.09, 11.09), ("ln", F16, -0.0, -np.inf, -65504),
    ("ln", F32, 3.4028235e38, 88.72284, 88.72284), ("ln", F32, -np.inf, np.nan, np.nan),
    ("abs", F16, -np.inf, np.inf, 65504), ("abs", F32, -3.4028235e38, 3.4028235e38, 3.4028235e38),
    ("reciprocal", F16, 65504, 0.000015, 0.000015), ("reciprocal", F16, -0.0, -np.inf, -65504),
    ("reciprocal", F32, 3.4028235e38, 2.938736e-39, 2.938736e-39), ("reciprocal", F32, np.inf, 0, 0),
    ("sqrt", F16, 65504, 256, 256), ("sqrt", F16, -np.inf, np.nan, 0), ("sqrt", F32, 3.4028235e38, 1.8446744e19,
     1.8446744e19),
    ("rsqrt", F16, 65504, 0.003906, 0.003906), ("rsqrt", F16, 0, np.inf, 65504), ("rsqrt", F32, -0.0, -np.inf, -np.inf),
    ("rsqrt", F32, 3.4028235e38, 5.421011e-20, 5.421011e-20), ("rsqrt", F32, np.inf, 0, 0),
    ("relu", F16, -65504, 0, 0), ("relu", F16, np.nan, np.nan, 0), ("relu", F16, np.inf, np.inf, 65504),
    ("relu", F32, -np.inf, 0, 0), ("relu", I32, -2147483648, 0, 0), ("relu", I32, 2147483647, 2147483647, 2147483647),
]
"""operation, type, operand, result, result with saturation: rows of the vendor's boundary-value page."""


@pytest.mark.parametrize(("name", "dtype", "operand", "plain", "saturated"), BOUNDARIES)
def test_boundary_values(
    device: Any, name: str, dtype: Any, operand: float, plain: float, saturated: float
) -> None:
    src, dst = device.local(np.full(16, operand, dtype)), device.local(np.zeros(16, dtype))
    device.run(f"{name}_l2", dst, src, 16)
    digits = 2e-2 if dtype is F16 else 1e-6  # as many as the page prints
    np.testing.assert_allclose(device.values(dst).astype(float), np.full(16, plain), rtol=digits)
    device.core.registers.saturate = True
    device.run(f"{name}_l2", dst, src, 16)
    np.testing.assert_allclose(device.values(dst).astype(float), np.full(16, saturated), rtol=digits)


@pytest.mark.parametrize("dtype", [F16, F32])
def test_relu_of_minus_zero_is_zero(device: Any, dtype: Any) -> None:
    src = device.local(np.full(16, -0.0, dtype))
    device.run("relu_l2", src, src, 16)
    assert not np.signbit(device.values(src)).any()


@pytest.mark.parametrize("name", ["exp", "ln", "rsqrt", "sqrt", "reciprocal"])
def test_every_half(device: Any, name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(F16)
    src, dst = device.local(x), device.local(np.zeros(1 << 15, F16))
    for half in (0, 1):
        device.run(f"{name}_l2", dst, src.at(half << 15), 1 << 15)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(device.values(dst), expected(name, x[half << 15 :][: 1 << 15]))


@pytest.mark.parametrize(("name", "dtype"), [("abs", I16), ("exp", I32), ("not", F16), ("relu", I16), ("sqrt", U16)])
def test_other_types_are_refused(device: Any, name: str, dtype: Any) -> None:
    x = device.local(np.zeros(64, dtype))
    with pytest.raises(UserError, match=f"ascendc.{name} does not take"):
        device.run(f"{name}_l2", x, x, 64)


@pytest.mark.parametrize("dtype", [F16, F32, I16, I32, np.int8, np.int64])
def test_neg_of_arch_3510(make_device: Any, dtype: Any) -> None:
    device = make_device("Ascend950PR")
    x = np.arange(-5, 40).astype(dtype)
    src, dst = device.local(x), device.local(np.zeros(45, dtype))
    device.run("neg_l2", dst, src, 41)
    assert np.array_equal(device.values(dst), np.where(np.arange(45) < 41, -x, 0).astype(dtype))


def test_neg_does_not_exist_on_other_chips(device: Any) -> None:
    x = device.local(np.zeros(8, F32))
    with pytest.raises(UserError, match="ascendc.neg does not exist on Ascend910B1"):
        device.run("neg_l2", x, x, 8)


def test_footprint(device: Any) -> None:
    src, dst = device.local(np.ones(128, F32)), device.local(np.zeros(128, F32))
    device.run("sqrt_l0", dst, src, 3, 2, params((2, 8), (1, 8)), is_set_mask=True)
    assert device.touched(dst, Role.WRITE) == {dst.address + r * 256 + byte for r in (0, 1) for byte in range(12)}
    device.run("sqrt_l2", dst, src, 99)
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 396))
