"""Raw attribute and type text to Python values. Bit patterns come from numpy and ml_dtypes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from npuscope.errors import UserError
from npuscope.mlir import MlirSyntaxError
from npuscope.mlir.attributes import (
    parse_array,
    parse_dictionary,
    parse_enum,
    parse_int,
    parse_integers,
    parse_number,
    parse_string,
)
from npuscope.mlir.types import (
    bit_width,
    element_type,
    function_type,
    is_float,
    is_integer,
    memory_space,
    memory_space_text,
    shape,
    split_top,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("512 : i32", 512),
        ("-7 : i64", -7),
        ("0 : index", 0),
        ("18446744073709551615 : ui64", 2**64 - 1),
        ("-9223372036854775808 : i64", -(2**63)),
        ("4", 4),
        (" 4:i8 ", 4),
        ("0x10 : i32", 16),
        ("0xFF : i8", -1),
        ("0xFF : si8", -1),
        ("0xFF : ui8", 255),
        ("0xFFFFFFFFFFFFFFFF : index", 2**64 - 1),
        ("true", 1),
        ("false", 0),
        ("dense<-3> : tensor<4xi32>", -3),
        ("dense<true> : vector<8xi1>", 1),
        ('dense<"0xFEFFFFFF"> : tensor<1024xi32>', -2),
    ],
)
def test_integers(text: str, value: int) -> None:
    """With and without a type, decimal and hexadecimal, repeated."""
    assert parse_int(text) == value
    assert parse_number(text) == value
    assert isinstance(parse_int(text), int)


@pytest.mark.parametrize("text", ["1.0 : f32", "0x3F800000 : f32", '"4"', "[4]", "4 : none", "four", "", "4 5", "1.5 : i32"])
def test_not_an_integer(text: str) -> None:
    """One line, and an exception that callers may catch as ValueError too."""
    with pytest.raises(UserError, match="expected") as caught:
        parse_int(text)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.500000e+00 : f32", 1.5),
        ("-2.5E-3 : f16", -0.0025),
        ("1. : f64", 1.0),
        ("0.1", 0.1),
        ("3 : f32", 3.0),
        ("0xFF800000 : f32", -math.inf),
        ("dense<2.0> : tensor<4xf32>", 2.0),
        ("dense<0xFF800000> : tensor<128x64xf32>", -math.inf),
        ('dense<"0x0000C03F"> : tensor<8xf32>', 1.5),
        ("dense<-1.0> : tensor<2xf16>", -1.0),
    ],
)
def test_floats(text: str, value: float) -> None:
    """Decimal, bit patterns, repeated."""
    assert parse_number(text) == value
    assert isinstance(parse_number(text), float)


@pytest.mark.parametrize(
    ("kind", "dtype", "word"),
    [
        ("f16", np.float16, np.uint16),
        ("bf16", ml_dtypes.bfloat16, np.uint16),
        ("f32", np.float32, np.uint32),
        ("f64", np.float64, np.uint64),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn, np.uint8),
        ("f8E5M2", ml_dtypes.float8_e5m2, np.uint8),
    ],
)
@pytest.mark.parametrize("value", [0.0, 1.0, -1.75, 0.0078125, -28.0])
def test_bit_patterns(kind: str, dtype: type, word: type, value: float) -> None:
    """Each width by the bits that numpy stores for the value; the sign of zero and NaN too."""
    bits = int(np.array([value], dtype).view(word)[0])
    assert parse_number(f"0x{bits:X} : {kind}") == value
    negative_zero = int(np.array([-0.0], dtype).view(word)[0])
    assert math.copysign(1.0, parse_number(f"0x{negative_zero:X} : {kind}")) == -1.0
    nan = int(np.array([np.nan], dtype).view(word)[0])
    assert math.isnan(parse_number(f"0x{nan:X} : {kind}"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0x1FFFF : f16", "has more bits than its type"),
        ("0x0 : f80", "has no decoder"),
        ("dense<[1, 2]> : tensor<2xi32>", "expected one repeated value"),
        ('dense<"0x0000000001000000"> : tensor<2xi32>', "expected one repeated value"),
        ("dense<> : tensor<0xf32>", "expected one repeated value"),
        ("#t.kind<1>", "expected a number"),
        ("1.0 : tensor<4xf32>", "expected a number"),
    ],
)
def test_not_a_number(text: str, problem: str) -> None:
    """The message names what was found."""
    with pytest.raises(UserError, match=problem):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"add"', "add"),
        ('""', ""),
        (r'"a\22b\\c\"d\n\t\5C"', 'a"b\\c"d\n\t\\'),
        (r'"\E4\BD\A0 ä"', "你 ä"),
        ("@main", "main"),
        ('@"my kernel"', "my kernel"),
    ],
)
def test_strings(text: str, value: str) -> None:
    """Escapes are bytes of UTF-8; symbols are strings too."""
    assert parse_string(text) == value


@pytest.mark.parametrize("text", ["add", '"add', '"a" "b"', "5 : i32", "@", "@a::@b"])
def test_not_a_string(text: str) -> None:
    """A nested symbol is none either."""
    with pytest.raises(UserError, match="expected a string attribute"):
        parse_string(text)


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("[1, 2]", ["1", "2"]),
        ("[]", []),
        ("[1 : i8, [2, 3], {a = 4}, \"x, ]\"]", ["1 : i8", "[2, 3]", "{a = 4}", '"x, ]"']),
        ("array<i32: 1, 2, 3>", ["1", "2", "3"]),
        ("array<i32>", []),
        ("array<i1: true, false>", ["true", "false"]),
        ("array<f32: 1.0, 0xFF800000>", ["1.0 : f32", "0xFF800000 : f32"]),
        ("dense<[1, 0]> : vector<2xi32>", ["1", "0"]),
        ("[ui8, memref<*xui32>]", ["ui8", "memref<*xui32>"]),
    ],
)  # fmt: skip
def test_arrays(text: str, elements: list[str]) -> None:
    """Elements are raw text."""
    assert parse_array(text) == elements


def test_arrays_of_numbers() -> None:
    """The elements read on with the other functions."""
    assert parse_integers("array<i32: 1, -2, 0>") == (1, -2, 0)
    assert parse_integers("[1 : i64, 2 : i64]") == (1, 2)
    assert [parse_number(element) for element in parse_array("array<f32: 1.0, 0xFF800000>")] == [1.0, -math.inf]
    with pytest.raises(UserError, match="expected an array attribute"):
        parse_array("5 : i32")


def test_dictionaries() -> None:
    """Keys lose their quotes, values stay raw, a lone key is a unit attribute."""
    text = '{a = 1 : i32, b, "c d" = {e = [1, 2]}, x.y = affine_map<(d0) -> (d0)>}'
    assert parse_dictionary(text) == {
        "a": "1 : i32",
        "b": "unit",
        "c d": "{e = [1, 2]}",
        "x.y": "affine_map<(d0) -> (d0)>",
    }
    assert parse_dictionary("{ }") == {}


@pytest.mark.parametrize("text", ["[a]", "{a = }", "{a b}", "{, }", "{a = 1, a = 2}", "{a = (1}", "{a} {b}"])
def test_not_a_dictionary(text: str) -> None:
    """Also when only part of the text is one."""
    with pytest.raises(UserError):
        parse_dictionary(text)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("#arith.overflow<none>", "none"),
        ("#emitasc<kernel_arg explicit>", "kernel_arg explicit"),
        ("#a.b<<c>, [d]>", "<c>, [d]"),
        ("<PIPE_V>", "PIPE_V"),
        ("#a.b< x >", "x"),
    ],
)
def test_enumerations(text: str, inner: str) -> None:
    """What the brackets enclose."""
    assert parse_enum(text) == inner


@pytest.mark.parametrize("text", ["4 : i32", "#a.b", "#a<b> : #c<d>", '"x"'])
def test_not_an_enumeration(text: str) -> None:
    """Numbers, strings and names without a body are none."""
    with pytest.raises(UserError, match="expected an enumeration attribute"):
        parse_enum(text)


@pytest.mark.parametrize(
    ("text", "element", "space", "extents"),
    [
        ("memref<?xf32, 22>", "f32", 22, (None,)),
        ("memref<2x3xi8>", "i8", None, (2, 3)),
        ("memref<f32>", "f32", None, ()),
        ("memref<4xf32, 3 : i32>", "f32", 3, (4,)),
        ("memref<4x?xf32, strided<[?, 1], offset: ?>, 22>", "f32", 22, (4, None)),
        ("memref<4xf32, affine_map<(d0) -> (d0 * 2)>, 7>", "f32", 7, (4,)),
        ("memref<4xf32, #hivm.address_space<ub>>", "f32", None, (4,)),
        ("memref<?x!emitasc.py_struct<\"T\", [i32], [\"x\"]>, 22>", '!emitasc.py_struct<"T", [i32], ["x"]>', 22, (None,)),
        ("!ascendc.local_tensor<*xf16>", "f16", None, None),
        ("!ascendc.global_tensor<4x?xi32>", "i32", None, (4, None)),
        ("tensor<128x!tt.ptr<f32>>", "!tt.ptr<f32>", None, (128,)),
        ("!tt.ptr<tensor<4xf32>, 1>", "tensor<4xf32>", 1, ()),
        ("!tla.ptr<f32, gm, 4>", "f32", None, ()),
        ("vector<[4]x2xbf16>", "bf16", None, (None, 2)),
        ("tensor<0xf8E4M3FN>", "f8E4M3FN", None, (0,)),
        ("f32", "f32", None, ()),
        ("index", "index", None, ()),
    ],
)  # fmt: skip
def test_shaped_types(text: str, element: str, space: int | None, extents: tuple[int | None, ...] | None) -> None:
    """Element, memory space, extents."""
    assert element_type(text) == element
    assert memory_space(text) == space
    assert shape(text) == extents


def test_memory_spaces_that_are_no_numbers() -> None:
    """They stay text."""
    assert memory_space_text("memref<4xf32, strided<[1]>, #hivm.address_space<ub>>") == "#hivm.address_space<ub>"
    assert memory_space_text("!tla.ptr<f32, gm, 4>") == "gm"
    assert memory_space_text("memref<?xf32, 22>") == "22"
    assert memory_space_text("i32") is None


@pytest.mark.parametrize("text", ["!ascendc.pipe", "!ascendc.queue<vecin, 2>", '!emitc.opaque<"T">', "none", ""])
def test_types_without_elements(text: str) -> None:
    """An error that callers may catch as ValueError."""
    with pytest.raises(ValueError, match="has no element type"):
        element_type(text)


def test_scalar_types() -> None:
    """Classes and widths; MLIR's tf32 has 19 bits."""
    assert all(is_integer(kind) for kind in ("i1", "i32", "ui8", "si64", "index"))
    assert not any(is_integer(kind) for kind in ("f32", "i", "indexed", "memref<4xi32>", "!i32"))
    assert all(is_float(kind) for kind in ("f16", "bf16", "f32", "f64", "tf32", "f8E5M2", "f8E4M3FN"))
    assert not any(is_float(kind) for kind in ("i32", "index", "f", "function", "vector<4xf32>"))
    kinds = ("i1", "ui16", "f32", "i64", "index", "bf16", "tf32", "f8E4M3FN", "f4E2M1FN")
    assert [bit_width(kind) for kind in kinds] == [1, 16, 32, 64, 64, 16, 19, 8, 4]
    with pytest.raises(UserError, match="has no bit width"):
        bit_width("memref<4xf32>")
    with pytest.raises(UserError, match="has no shape"):
        shape("!ascendc.pipe")


@pytest.mark.parametrize(
    ("text", "separator", "pieces"),
    [
        ("a, b,c", ",", ["a", "b", "c"]),
        ("", ",", []),
        ("a<b, c>, (d, [e, {f, g}]), \"h, (\"", ",", ["a<b, c>", "(d, [e, {f, g}])", '"h, ("']),
        ("(a) -> (b, c), d", ",", ["(a) -> (b, c)", "d"]),
        ("d0 >= 0, d1 <= 2", ",", ["d0 >= 0", "d1 <= 2"]),
        ("@a::@b : i32", ":", ["@a::@b", "i32"]),
        ("a = {b = c} = d", "=", ["a", "{b = c}", "d"]),
        ("a,", ",", ["a", ""]),
    ],
)  # fmt: skip
def test_split_top(text: str, separator: str, pieces: list[str]) -> None:
    """Only separators that nothing encloses count."""
    assert split_top(text, separator) == pieces


@pytest.mark.parametrize("text", ["(a, b", "a), b", "(a], b", '"a, b'])
def test_split_top_wants_balance(text: str) -> None:
    """The error says where."""
    with pytest.raises(MlirSyntaxError, match="line 1, column"):
        split_top(text)


def test_function_types() -> None:
    """Nested function types and one result without parentheses."""
    assert function_type("(memref<?xf32, 22>, i32) -> (i1)") == (("memref<?xf32, 22>", "i32"), ("i1",))
    assert function_type("() -> ()") == ((), ())
    assert function_type("((i1) -> i2, i3) -> ((i4) -> (i5, i6))") == (("(i1) -> i2", "i3"), ("(i4) -> (i5, i6)",))
    assert function_type("(i1) -> !t.f<(i2) -> i3>") == (("i1",), ("!t.f<(i2) -> i3>",))
    for wrong in ("i32", "(i32)", "(i32) -> i32 i32", "(i32,) -> ()", "(5) -> ()"):
        with pytest.raises(MlirSyntaxError):
            function_type(wrong)
