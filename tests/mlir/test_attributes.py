"""Attribute text to Python values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from npuscope.mlir.attributes import parse_array, parse_int, parse_number, parse_string
from npuscope.mlir.types import bit_width, element_type, is_float, is_integer, memory_space, shape


@pytest.mark.parametrize(
    ("text", "value"),
    [("512 : i32", 512), ("-7 : i64", -7), ("0 : index", 0), ("18446744073709551615 : ui64", 2**64 - 1), ("4", 4)],
)
def test_integers(text: str, value: int) -> None:
    """With and without a type."""
    assert parse_int(text) == value
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.500000e+00 : f32", 1.5),
        ("0x3F800000 : f32", 1.0),
        ("0x3C00 : f16", 1.0),
        ("0x3F80 : bf16", 1.0),
        ("0x3FF0000000000000 : f64", 1.0),
        ("0xFF800000 : f32", -math.inf),
        ("dense<2.0> : tensor<4xf32>", 2.0),
        ("true", 1),
        ("false", 0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    """Decimal, hexadecimal bit patterns by width, splats, booleans."""
    assert parse_number(text) == value


def test_not_a_number() -> None:
    """A bit pattern of NaN."""
    assert np.isnan(parse_number("0x7FC00000 : f32"))


def test_strings_and_arrays() -> None:
    """Escapes; both array forms."""
    assert parse_string('"a\\22b"') == 'a"b'
    assert [int(item) for item in parse_array("array<i32: 1, 2, 3>")] == [1, 2, 3]
    assert parse_array("array<i32>") == []


@pytest.mark.parametrize(
    ("text", "element", "space", "extents"),
    [
        ("memref<?xf32, 22>", "f32", 22, (None,)),
        ("memref<2x3xi8>", "i8", None, (2, 3)),
        ("!ascendc.local_tensor<*xf16>", "f16", None, None),
        ("!ascendc.global_tensor<4x?xi32>", "i32", None, (4, None)),
    ],
)
def test_shaped_types(text: str, element: str, space: int | None, extents: tuple[int | None, ...] | None) -> None:
    """Element, memory space, extents."""
    assert element_type(text) == element
    assert memory_space(text) == space
    assert shape(text) == extents


def test_scalar_types() -> None:
    """Classes and widths."""
    assert is_integer("ui8")
    assert is_integer("index")
    assert not is_integer("f32")
    assert is_float("bf16")
    assert [bit_width(kind) for kind in ("i1", "ui16", "f32", "i64")] == [1, 16, 32, 64]
