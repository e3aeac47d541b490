"""Scalar casts and bit counts: the examples of the vendor's pages, and numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.errors import UserError

NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
U64 = (1 << 64) - 1


def cast(device: Any, value: float, dtype: str, mode: int = NONE, source: str = "f32") -> Any:
    """Cast<source, dtype, mode>(value)."""
    return device.run("scalar_cast", value, dtype=dtype, round_mode=mode, operand_types=(source,))


@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [(1.5, ROUND, 2), (1.5, CEIL, 2), (1.5, FLOOR, 1), (1.5, RINT, 2), (2.5, ROUND, 3), (2.5, CEIL, 3), (2.5, FLOOR, 2),
     (2.5, RINT, 2), (-2.5, ROUND, -3), (-2.5, RINT, -2), (3e9, RINT, 2**31 - 1), (-3e9, FLOOR, -(2**31))],
)
def test_float_to_int(device: Any, value: float, mode: int, expected: int) -> None:
    """Page Cast (float to half, int32): 1.5 and 2.5 in each mode; saturation at the ends."""
    assert cast(device, value, "i32", mode) == expected


def test_float_to_half_rounds_to_odd(device: Any) -> None:
    """The page's example: 3.14159 is 3.142578 in mode ODD, one step above the nearest even half."""
    assert cast(device, float(np.float32(3.14159)), "f16", ODD) == pytest.approx(3.142578, abs=1e-6)


def test_float_to_bfloat16(device: Any) -> None:
    """Page Cast (float to bfloat16): 3.14159 is 3.140625, rounded to nearest even."""
    assert cast(device, float(np.float32(3.14159)), "bf16") == 3.140625
    values = np.linspace(-5, 5, 50, dtype=np.float32)
    assert [cast(device, float(v), "bf16") for v in values] == values.astype(ml_dtypes.bfloat16).astype(float).tolist()


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_to_float(device: Any, source: str) -> None:
    """Exact."""
    assert cast(device, 1.5, "f32", source=source) == 1.5


@pytest.mark.parametrize(("source", "target"), [("f32", "f32"), ("f16", "i32"), ("f32", "i64"), ("i32", "f32")])
def test_casts_that_do_not_exist(device: Any, source: str, target: str) -> None:
    """Named with both types."""
    with pytest.raises(UserError, match="scalar_cast from .* does not exist"):
        cast(device, 1, target, source=source)


@pytest.mark.parametrize(
    ("value", "bit", "expected"),
    [(U64, 0, -1), (0, 1, -1), (0xFF00, 0, 0), (0xFF00, 1, 8), (0x00FF, 0, 8), (0x00FF, 1, 0),
     (0x1000000000000100, 1, 8), (-1, 1, 0), (1 << 63, 1, 63)],
)
def test_first_bit(device: Any, value: int, bit: int, expected: int) -> None:
    """Page GetSFFValue."""
    assert device.run("scalar_get_sff_value", value, bit) == expected


@pytest.mark.parametrize(
    ("value", "bit", "expected"), [(0xFFFF, 1, 16), (0xFFFF, 0, 48), (-1, 1, 64), (0, 0, 64), (-1, 0, 0)]
)
def test_bit_count(device: Any, value: int, bit: int, expected: int) -> None:
    """Page GetBitCount."""
    assert device.run("scalar_get_count_of_value", value, bit) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0xFFFF, 48), (0, 64), (U64, 0), (-1, 0), (0x0100000000000020, 7)]
)
def test_leading_zeros(device: Any, value: int, expected: int) -> None:
    """Page CountLeadingZero."""
    assert device.run("scalar_count_leading_zero", value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, -1), (-1, -1), (U64, -1), (0x7FFFFFFFFFFFFFFF, 0), (0x8000000000000000, 0), (1, 62), (0x00F0000000000000, 7),
     (0x0100000000000020, 6), (-2, 62)],
)
def test_bits_like_the_sign(device: Any, value: int, expected: int) -> None:
    """Page CountBitsCntSameAsSignBit."""
    assert device.run("count_bits_cnt_same_as_sign_bit", value) == expected


def test_no_rows(device: Any) -> None:
    """As other scalar arithmetic."""
    device.run("scalar_count_leading_zero", 1)
    assert device.opcodes() == []
