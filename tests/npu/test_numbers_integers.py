from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.npu.numbers import add, mul, shift_left, shift_right, sub

pytestmark = pytest.mark.filterwarnings("error")

Array = np.ndarray[Any, Any]
EXACT: dict[Callable[..., Array], Callable[[int, int], int]] = {
    add: operator.add,
    sub: operator.sub,
    mul: operator.mul,
}
NARROW = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
WIDE = [np.int64, np.uint64]


def operands(dtype: type, seed: int = 1) -> tuple[Array, Array]:
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, 2, 3], dtype)
    left, right = (grid.ravel() for grid in np.meshgrid(edges, edges))
    noise = np.random.default_rng(seed).integers(info.min, info.max, (2, 333), dtype, endpoint=True)
    return np.concatenate([left, noise[0]]), np.concatenate([right, noise[1]])


def wrapped(value: int, dtype: type) -> int:
    info = np.iinfo(dtype)
    return (value - int(info.min)) % (1 << info.bits) + int(info.min)


def clamped(value: int, dtype: type) -> int:
    info = np.iinfo(dtype)
    return max(int(info.min), min(int(info.max), value))


@pytest.mark.parametrize("function", EXACT)
@pytest.mark.parametrize("dtype", NARROW + WIDE)
def test_wrapping(function: Callable[..., Array], dtype: type) -> None:
    a, b = operands(dtype)
    expected = [wrapped(EXACT[function](x, y), dtype) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    result = function(a, b)
    assert result.dtype == dtype
    assert result.tolist() == expected


@pytest.mark.parametrize("function", EXACT)
@pytest.mark.parametrize("dtype", NARROW)
def test_saturating(function: Callable[..., Array], dtype: type) -> None:
    a, b = operands(dtype, seed=2)
    expected = [clamped(EXACT[function](x, y), dtype) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    result = function(a, b, saturate=True)
    assert result.dtype == dtype
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("function", "a", "b", "wrapping", "saturating"),
    [
        # The vendor's boundary-value tables for Add, Sub and Mul, int16.
        (add, -32768, -32768, 0, -32768),
        (add, -32768, 32767, -1, -1),
        (add, 32767, 32767, -2, 32767),
        (sub, -32768, 32767, 1, -32768),
        (sub, 32767, -32768, -1, 32767),
        (mul, -32768, -32768, 0, 32767),
        (mul, -32768, 32767, -32768, -32768),
        (mul, 32767, 32767, 1, 32767),
    ],
)
def test_published_boundaries(function: Callable[..., Array], a: int, b: int, wrapping: int, saturating: int) -> None:
    left = np.array([a], np.int16)
    assert function(left, b).tolist() == [wrapping]
    assert function(left, np.int16(b), saturate=True).tolist() == [saturating]


def test_operands_must_be_integers_of_one_type() -> None:
    with pytest.raises(ValueError, match="int16_t and int32_t"):
        add(np.zeros(2, np.int16), np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="half"):
        mul(np.zeros(2, np.float16), np.zeros(2, np.float16))
    with pytest.raises(ValueError, match="int64_t arithmetic does not saturate"):
        sub(np.zeros(2, np.int64), np.zeros(2, np.int64), saturate=True)


@pytest.mark.parametrize("dtype", NARROW + WIDE)
def test_shift_right_by_every_amount(dtype: type) -> None:
    values, _ = operands(dtype)
    for amount in range(np.iinfo(dtype).bits + 3):
        expected = [value >> amount for value in values.tolist()]  # Python's is arithmetic and unbounded
        result = shift_right(values, amount)
        assert result.dtype == dtype
        assert result.tolist() == expected


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_rounded_shift_right_by_every_amount(dtype: type) -> None:
    values, _ = operands(dtype)
    for amount in range(np.iinfo(dtype).bits + 3):
        expected = [(value + (1 << amount >> 1)) >> amount for value in values.tolist()]
        result = shift_right(values, amount, rounded=True)
        assert result.dtype == dtype
        assert result.tolist() == expected


def test_rounded_shift_as_published() -> None:
    assert shift_right(np.array([17], np.int16), 5, rounded=True).tolist() == [1]
    assert shift_right(np.array([17], np.int16), 5).tolist() == [0]
    assert shift_right(np.array([17], np.uint16), 5, rounded=True).tolist() == [0]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_logical_shift_left_by_every_amount(dtype: type) -> None:
    values, _ = operands(dtype)
    for amount in range(np.iinfo(dtype).bits + 3):
        result = shift_left(values, amount)
        assert result.dtype == dtype
        assert result.tolist() == [wrapped(value << amount, dtype) for value in values.tolist()]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_arithmetic_shift_left_keeps_the_sign(dtype: type) -> None:
    values, _ = operands(dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    bits = np.iinfo(dtype).bits
    for amount in range(bits):
        expected = [(low if value < 0 else 0) | ((value << amount) & high) for value in values.tolist()]
        assert shift_left(values, amount).tolist() == expected
    for amount in (bits, bits + 1, bits + 40):
        assert not shift_left(values, amount).any()


def test_shifts_as_published() -> None:
    signed = np.array([0b1010101010101010], np.uint16).view(np.int16)
    for amount, expected in ((1, 0b1101010101010100), (3, 0b1101010101010000)):
        assert shift_left(signed, amount).view(np.uint16).tolist() == [expected]
    for amount, expected in ((1, 0b1101010101010101), (3, 0b1111010101010101)):
        assert shift_right(signed, amount).view(np.uint16).tolist() == [expected]
    unsigned = signed.view(np.uint16)
    assert shift_left(unsigned, 1).tolist() == [0b0101010101010100]
    assert shift_right(unsigned, 1).tolist() == [0b0101010101010101]


def test_shift_amounts_may_be_an_array() -> None:
    values = np.array([[1, 2, 4], [-8, 16, 32]], np.int32)
    amounts = np.array([1, 2, 40], np.int32)
    assert shift_left(values, amounts).tolist() == [[2, 8, 0], [-16, 64, 0]]
    assert shift_right(values, amounts).tolist() == [[0, 0, 0], [-4, 4, 0]]
    with pytest.raises(ValueError, match="shift amount -1"):
        shift_right(values, np.array([0, -1, 2]))
    with pytest.raises(ValueError, match="float"):
        shift_left(np.zeros(2, np.float32), 1)
