"""Vector instructions with a tensor and a scalar, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.trace.schema import Role

F16, F32, I16, I32, U16, U32 = np.float16, np.float32, np.int16, np.int32, np.uint16, np.uint32
NUMBERS = (F16, F32, I16, I32)


def leaky(x: Any, s: Any) -> Any:
    return np.where(x >= 0, x, x * s)


ARITHMETIC: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "adds": (np.add, NUMBERS),
    "muls": (np.multiply, NUMBERS),
    "maxs": (np.maximum, NUMBERS),
    "mins": (np.minimum, NUMBERS),
    "leaky_relu": (leaky, (F16, F32)),
}
CASES = [(name, dtype) for name, (_, dtypes) in ARITHMETIC.items() for dtype in dtypes]


def values(dtype: Any, size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size, dtype, endpoint=True)
    return rng.normal(0, 30, size).astype(dtype)


def scalar_for(dtype: Any) -> Any:
    return 0.3 if np.dtype(dtype).kind == "f" else 12345


def expected(name: str, x: np.ndarray, scalar: Any) -> np.ndarray:
    """numpy with the scalar rounded to the element type; half in float32, rounded once."""
    function = ARITHMETIC[name][0]
    element = np.asarray(scalar).astype(x.dtype)
    if x.dtype == F16:
        return np.asarray(function(x.astype(F32), element.astype(F32))).astype(F16)
    return np.asarray(function(x, element)).astype(x.dtype)


def params(dst: tuple[int, int] = (1, 8), src: tuple[int, int] = (1, 8)) -> Any:
    return construct("unary_repeat_params", "", dst[0], src[0], dst[1], src[1])


@pytest.mark.parametrize(("name", "dtype"), CASES)
@pytest.mark.parametrize("count", [1, 65, 300])
def test_count_form(device: Any, name: str, dtype: Any, count: int) -> None:
    x = values(dtype, 300)
    src, dst = device.local(x), device.local(np.zeros(300, dtype))
    device.run(f"{name}_l2", dst, src, scalar_for(dtype), count, is_set_mask=True)
    got = device.values(dst)
    assert np.array_equal(got[:count], expected(name, x, scalar_for(dtype))[:count])
    assert not got[count:].any()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_masked_and_strided_repeats(device: Any, name: str, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    x = values(dtype, 4 * lanes)
    src, dst = device.local(x), device.local(np.zeros(2 * lanes, dtype))
    device.run(f"{name}_l0", dst, src, scalar_for(dtype), 19, 2, params((1, 8), (1, 24)), is_set_mask=True)
    got = device.values(dst).reshape(2, lanes)
    assert np.array_equal(got[:, :19], expected(name, x.reshape(4, lanes)[[0, 3], :19], scalar_for(dtype)))
    assert not got[:, 19:].any()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_bit_masks(device: Any, name: str, dtype: Any) -> None:
    lanes = 256 // np.dtype(dtype).itemsize
    x = values(dtype, lanes)
    src, dst = device.local(x), device.local(np.zeros(lanes, dtype))
    device.run(f"{name}_l1", dst, src, scalar_for(dtype), [0b1001, 0], 1, params(), is_set_mask=True)
    on = np.isin(np.arange(lanes), [0, 3])
    assert np.array_equal(device.values(dst), np.where(on, expected(name, x, scalar_for(dtype)), 0).astype(dtype))


def test_the_count_form_without_is_set_mask_obeys_the_registers(device: Any) -> None:
    src, dst = device.local(np.zeros(300, F32)), device.local(np.zeros(300, F32))
    device.run("set_mask_count")
    device.run("set_vector_mask_l0", 290, dtype="f32", mode=1)
    device.run("adds_l2", dst, src, 1.0, 1)
    assert device.values(dst).sum() == 290
    device.run("set_mask_norm")
    device.run("set_vector_mask_l0", 10, dtype="f32", mode=0)
    device.run("adds_l2", dst, src, 5.0, 1)
    assert device.values(dst).sum() == 280 + 50


@pytest.mark.parametrize("dtype", [F16, F32])
def test_axpy_of_one_type(device: Any, dtype: Any) -> None:
    x, old = values(dtype, 200), values(dtype, 200)[::-1].copy()
    src, dst = device.local(x), device.local(old)
    device.run("axpy_l2", dst, src, 0.7, 150)
    product = (x.astype(F32) * F32(dtype(0.7))).astype(dtype)
    result = (product.astype(F32) + old.astype(F32)).astype(dtype)
    assert np.array_equal(device.values(dst), np.where(np.arange(200) < 150, result, old))


def test_axpy_of_half_into_float(device: Any) -> None:
    x, old = values(F16, 256), values(F32, 256)
    src, dst = device.local(x), device.local(old)
    result = x.astype(F32) * F32(F16(0.7)) + old
    device.run("axpy_l0", dst, src, 0.7, 64, 2, params((1, 8), (1, 4)), is_set_mask=True)
    assert np.array_equal(device.values(dst), np.where(np.arange(256) < 128, result, old))
    words = [(1 << 64) - 1, 0]
    device.run("axpy_l1", dst.at(128), src.at(128), 0.7, words, 2, params((1, 8), (1, 4)), is_set_mask=True)
    assert np.array_equal(device.values(dst), result)


def test_saturation_of_axpy_applies_to_the_product_first(device: Any) -> None:
    """65504 * 65504 saturates to 65504, plus -65504 is 0 (boundary-value page, Axpy)."""
    src, dst = device.local(np.full(16, 65504, F16)), device.local(np.full(16, -65504, F16))
    device.core.registers.saturate = True
    device.run("axpy_l2", dst, src, 65504.0, 16)
    assert not device.values(dst).any()


@pytest.mark.parametrize("dtype", [I16, U16, I32, U32])
@pytest.mark.parametrize("amount", [0, 1, 5, 16])
def test_shifts(device: Any, dtype: Any, amount: int) -> None:
    x = values(dtype, 100)
    width = 8 * np.dtype(dtype).itemsize
    wide = x.astype(np.int64)
    low = (1 << width) - 1
    if np.dtype(dtype).kind == "u":
        left = (wide << amount) & low
    else:  # the sign bit stays, the bits below it shift out
        sign = 1 << (width - 1)
        left = ((wide << amount) & (sign - 1)) | (wide & sign)
        left = np.where(amount < width, left, 0)
    src, dst = device.local(x), device.local(np.zeros(100, dtype))
    device.run("shift_left_l2", dst, src, amount, 100, is_set_mask=True)
    assert np.array_equal(device.values(dst), left.astype(dtype))
    device.run("shift_right_l2", dst, src, amount, 100, is_set_mask=True)
    assert np.array_equal(device.values(dst), (wide >> amount).astype(dtype))


@pytest.mark.parametrize(("name", "amount", "result"), [
    ("shift_left", 1, 0b1101010101010100), ("shift_left", 3, 0b1101010101010000),
    ("shift_right", 1, 0b1101010101010101), ("shift_right", 3, 0b1111010101010101),
])
def test_published_shifts_of_int16(device: Any, name: str, amount: int, result: int) -> None:
    """Examples on the vendor's ShiftLeft and ShiftRight pages."""
    src = device.local(np.full(16, 0b1010101010101010, U16).view(I16))
    device.run(f"{name}_l0", src, src, amount, 16, 1, params(), is_set_mask=True)
    assert (device.values(src).view(U16) == result).all()


@pytest.mark.parametrize(("amount", "result"), [(17, 0), (-1, 40)])
def test_shift_amounts_out_of_range_are_faults(device: Any, amount: int, result: int) -> None:
    src = device.local(np.full(16, 40, I16))
    device.run("shift_right_l2", src, src, amount, 16, is_set_mask=True)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"]
    assert (device.values(src) == result).all()


@pytest.mark.parametrize(("operand", "slope", "result"), [
    (-65504, 65504, -np.inf), (-65504, 0, -0.0), (65504, np.nan, 65504), (0.0, np.inf, 0), (-0.0, np.inf, np.nan),
    (-0.0, -65504, 0.0), (-0.0, 65504, -0.0), (np.nan, 1, np.nan), (-np.inf, 0, np.nan), (-np.inf, -np.inf, np.inf),
])
def test_boundary_values_of_leaky_relu(device: Any, operand: float, slope: float, result: float) -> None:
    src = device.local(np.full(16, operand, F16))
    device.run("leaky_relu_l2", src, src, slope, 16, is_set_mask=True)
    got = device.values(src)
    np.testing.assert_array_equal(got, np.full(16, result, F16))
    assert np.isnan(result) or (np.signbit(got) == np.signbit(result)).all()


@pytest.mark.parametrize(("dtype", "operand", "scalar", "plain", "saturated"), [
    (F16, 65504, 65504, np.inf, 65504), (F16, np.inf, -np.inf, np.nan, 0), (I16, 32767, 1, -32768, 32767),
    (I32, -2147483648, -1, 2147483647, -2147483648), (F32, 3.4e38, 3.4e38, np.inf, np.inf),
])
def test_saturation_of_adds(
    device: Any, dtype: Any, operand: Any, scalar: Any, plain: Any, saturated: Any
) -> None:
    src, dst = device.local(np.full(16, operand, dtype)), device.local(np.zeros(16, dtype))
    device.run("adds_l2", dst, src, scalar, 16, is_set_mask=True)
    np.testing.assert_array_equal(device.values(dst), np.full(16, plain, dtype))
    device.core.registers.saturate = True
    device.run("adds_l2", dst, src, scalar, 16, is_set_mask=True)
    np.testing.assert_array_equal(device.values(dst), np.full(16, saturated, dtype))


@pytest.mark.parametrize(("name", "dtype"), [("adds", U16), ("leaky_relu", I32), ("shift_left", F16), ("axpy", I16)])
def test_other_types_are_refused(device: Any, name: str, dtype: Any) -> None:
    x = device.local(np.zeros(64, dtype))
    with pytest.raises(UserError, match=f"ascendc.{name} does not take"):
        device.run(f"{name}_l2", x, x, 1, 64, is_set_mask=True)


def test_footprint(device: Any) -> None:
    src, dst = device.local(np.ones(128, F32)), device.local(np.zeros(128, F32))
    device.run("axpy_l2", dst, src, 2.0, 33)
    assert device.touched(dst, Role.READ) == set(range(dst.address, dst.address + 132))
    device.run("muls_l0", dst, src, 2.0, 5, 2, params((1, 8), (1, 0)), is_set_mask=True)
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 20))
