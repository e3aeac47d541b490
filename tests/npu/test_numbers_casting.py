"""Cast against Python's own exact rounding of every half and bfloat16, and the vendor's published examples."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.npu.numbers import RoundMode, cast, cast_modes, convert, dtype_of

pytestmark = pytest.mark.filterwarnings("error")  # overflow and NaN are ordinary results

Array = np.ndarray[Any, Any]
NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = RoundMode
MODES_WITHOUT_ODD = (RINT, FLOOR, CEIL, ROUND, TRUNC)


def every(name: str) -> Array:
    """All 65536 values of a 16-bit float."""
    return np.arange(1 << 16).astype(np.uint16).view(dtype_of(name))


def rounded(value: float, mode: RoundMode) -> int | float:
    """`value` as an exact Python integer; what is not finite as it is. Python's round is exact, ties to even."""
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    if mode in (NONE, RINT):
        return round(value)
    if mode is FLOOR:
        return math.floor(value)
    if mode is CEIL:
        return math.ceil(value)
    away = whole + (1 if value > 0 else -1)
    if mode is ROUND:
        return away if abs(value - whole) >= 0.5 else whole
    if mode is ODD:
        return whole if value == whole or whole % 2 else away
    return whole


def clamped(values: list[int | float], low: int, high: int) -> list[int]:
    return [0 if value != value else int(max(low, min(high, value))) for value in values]


def low_bits(values: list[int | float], low: int, high: int) -> list[int]:
    length = high - low + 1
    return [
        (value - low) % length + low if isinstance(value, int) else clamped([value], low, high)[0] for value in values
    ]


def limits(name: str) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype_of(name))
    return int(info.min), int(info.max)


@pytest.mark.parametrize("mode", RoundMode)
def test_every_half_to_integers(mode: RoundMode) -> None:
    values = every("f16")
    with np.errstate(invalid="ignore"):
        expected = [rounded(value, mode) for value in values.astype(np.float64).tolist()]
    for name in ("i4", "i8", "ui8", "i16", "i32"):
        result = cast(values, dtype_of(name), mode)
        assert result.dtype == dtype_of(name)
        np.testing.assert_array_equal(result.astype(np.int64), clamped(expected, *limits(name)), name)
        cut = cast(values, dtype_of(name), mode, keep_low_bits=True)
        np.testing.assert_array_equal(cut.astype(np.int64), low_bits(expected, *limits(name)), name)


@pytest.mark.parametrize("mode", RoundMode)
def test_every_bfloat16_to_int32(mode: RoundMode) -> None:
    values = every("bf16")
    with np.errstate(invalid="ignore"):
        expected = [rounded(value, mode) for value in values.astype(np.float64).tolist()]
    np.testing.assert_array_equal(cast(values, dtype_of("i32"), mode), clamped(expected, *limits("i32")))
    for name in ("i64", "ui64", "ui32"):
        cut = convert(values, dtype_of(name), mode, keep_low_bits=True)
        np.testing.assert_array_equal(cut, np.array(low_bits(expected, *limits(name)), dtype_of(name)), name)


@pytest.mark.parametrize("mode", RoundMode)
@pytest.mark.parametrize("name", ["i16", "i32", "i64"])
def test_float_to_integers(name: str, mode: RoundMode) -> None:
    rng = np.random.default_rng(11)
    low, high = limits(name)
    edges = [low, high, low - 0.5, high + 0.5, low - 1, high + 1, 8388607.5, 4194304.5, 0.5, -0.5, 1.5, -2.5, 3e38]
    edges += [math.inf, -math.inf, math.nan, 0.0, 1e-45, -1e-45]
    near = np.array(edges, np.float32)
    noise = rng.integers(0, 1 << 32, 1501, np.uint32).view(np.float32)
    halves = rng.integers(-4000, 4000, 501).astype(np.float32) / 2
    values = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(9)), noise, halves])
    expected = [rounded(value, mode) for value in values.tolist()]
    np.testing.assert_array_equal(cast(values, dtype_of(name), mode), clamped(expected, low, high))
    cut = cast(values, dtype_of(name), mode, keep_low_bits=True)
    np.testing.assert_array_equal(cut, low_bits(expected, low, high))


@pytest.mark.parametrize("shape", [(0,), (1,), (13,), (3, 7), (2, 0, 5)])
def test_shapes_are_kept(shape: tuple[int, ...]) -> None:
    values = np.full(shape, 1.5, np.float32)
    for mode in RoundMode:
        for name in ("f16", "bf16", "f32", "i16", "i32", "i64"):
            assert cast(values, dtype_of(name), mode).shape == shape
    assert cast(values[..., ::2], dtype_of("i32"), CEIL).tolist() == np.full(values[..., ::2].shape, 2).tolist()


# (source, value, destination, results for RINT, FLOOR, CEIL, ROUND, TRUNC): the vendor's precision-conversion page.
EXAMPLES = [
    ("i16", 2**12 + 2, "f16", (2**12, 2**12, 2**12 + 4, 2**12 + 4, 2**12)),
    ("f16", 1.5, "i4", (2, 1, 2, 2, 1)),
    ("f16", 2**7 - 0.5, "i8", (127, 127, 127, 127, 127)),
    ("f16", 1.75, "ui8", (2, 1, 2, 2, 1)),
    ("f16", 2**7 - 0.5, "i16", (128, 127, 128, 128, 127)),
    ("f16", -1.5, "i32", (-2, -2, -1, -2, -1)),
    ("bf16", 2**6 + 0.5, "i32", (64, 64, 65, 65, 64)),
    ("i32", 2**25 + 3, "f32", (2**25 + 4, 2**25, 2**25 + 4, 2**25 + 4, 2**25)),
    ("f32", 2**22 + 0.5, "i16", (32767,) * 5),
    ("f32", 0.5 + 2.0**-12, "f16", (0.5, 0.5, 0.5 + 2.0**-11, 0.5 + 2.0**-11, 0.5)),
    ("f32", 0.5 + 2.0**-9 + 2.0**-11, "bf16", (0.5 + 2.0**-8, 0.5, 0.5 + 2.0**-8, 0.5 + 2.0**-8, 0.5)),
    ("f32", 2**22 + 0.5, "i32", (2**22, 2**22, 2**22 + 1, 2**22 + 1, 2**22)),
    ("f32", 0.5, "f32", (0, 0, 1, 1, 0)),
    ("f32", 2**22 + 0.5, "i64", (2**22, 2**22, 2**22 + 1, 2**22 + 1, 2**22)),
    ("i64", 2**35 + 2**12 + 2**11, "f32", (2**35 + 2**13, 2**35 + 2**12, 2**35 + 2**13, 2**35 + 2**13, 2**35 + 2**12)),
]


@pytest.mark.parametrize(("src", "value", "dst", "expected"), EXAMPLES, ids=[f"{e[0]}-{e[2]}" for e in EXAMPLES])
def test_published_examples(src: str, value: float, dst: str, expected: tuple[float, ...]) -> None:
    values = np.array([value], dtype_of(src))
    results = [cast(values, dtype_of(dst), mode) for mode in MODES_WITHOUT_ODD]
    assert tuple(float(result[0]) for result in results) == expected


def test_published_examples_of_odd_and_of_exact_pairs() -> None:
    assert cast(np.array([0.5 + 2.0**-12], np.float32), dtype_of("f16"), ODD).tolist() == [0.5 + 2.0**-11]
    assert cast(np.array([2**31 - 1], np.int32), dtype_of("i16")).tolist() == [2**15 - 1]
    assert cast(np.array([2**31], np.int64), dtype_of("i32")).tolist() == [2**31 - 1]
    assert cast(np.array([2**31 - 1], np.int32), dtype_of("i64")).tolist() == [2**31 - 1]
    assert cast(np.array([2**15 - 1], np.int16), dtype_of("f32")).tolist() == [2**15 - 1]
    assert cast(np.array([-1], np.int8), dtype_of("f16")).tolist() == [-1.0]
    assert cast(np.array([1.5 - 2.0**-10], np.float16), dtype_of("f32")).tolist() == [1.5 - 2.0**-10]


def test_cut_to_low_bits_as_published() -> None:
    assert cast(np.array([257, -np.inf, np.nan], np.float16), dtype_of("ui8"), keep_low_bits=True).tolist() == [1, 0, 0]
    assert convert(np.array([256], np.int32), dtype_of("ui8"), keep_low_bits=True).tolist() == [0]
    assert convert(np.array([256], np.int32), dtype_of("ui8")).tolist() == [255]


@pytest.mark.parametrize("name", ["i8", "ui8", "i4"])
def test_every_small_integer_is_a_half(name: str) -> None:
    low, high = limits(name)
    values = np.arange(low, high + 1).astype(dtype_of(name))
    result = cast(values, dtype_of("f16"))
    assert result.dtype == np.float16
    assert result.tolist() == list(range(low, high + 1))


def test_every_int16_to_half_and_float() -> None:
    values = np.arange(-32768, 32768).astype(np.int16)
    np.testing.assert_array_equal(cast(values, dtype_of("f32")), values.astype(np.float64))
    np.testing.assert_array_equal(cast(values, dtype_of("f16"), RINT), values.astype(np.float32).astype(np.float16))
    down, up = (cast(values, dtype_of("f16"), mode).astype(np.float64) for mode in (FLOOR, CEIL))
    assert np.all((down <= values) & (values <= up))
    unit = np.exp2(np.maximum(np.frexp(np.abs(values.astype(np.float64)))[1] - 11, 0))
    np.testing.assert_array_equal(down, np.floor(values / unit) * unit)
    np.testing.assert_array_equal(up, np.ceil(values / unit) * unit)


def test_integers_narrow_to_their_range() -> None:
    wide = np.array([-(2**31), -32769, -32768, -1, 0, 32767, 32768, 2**31 - 1], np.int32)
    assert cast(wide, dtype_of("i16")).tolist() == [-32768, -32768, -32768, -1, 0, 32767, 32767, 32767]
    cut = cast(wide, dtype_of("i16"), keep_low_bits=True)
    assert cut.tolist() == [0, 32767, -32768, -1, 0, 32767, -32768, -1]
    wider = np.array([-(2**63), -(2**31) - 1, 5, 2**32, 2**63 - 1], np.int64)
    assert cast(wider, dtype_of("i32")).tolist() == [-(2**31), -(2**31), 5, 2**31 - 1, 2**31 - 1]
    assert cast(wider, dtype_of("i32"), keep_low_bits=True).tolist() == [0, 2**31 - 1, 5, 0, -1]
    assert convert(np.array([-9, 8, 7], np.int16), dtype_of("i4")).astype(int).tolist() == [-8, 7, 7]
    assert convert(np.array([-9, 8, 7], np.int16), dtype_of("i4"), keep_low_bits=True).astype(int).tolist() == [
        7,
        -8,
        7,
    ]
    assert convert(np.array([-5, 5], np.int8), dtype_of("ui32")).tolist() == [0, 5]
    assert convert(np.array([2**64 - 1, 5], np.uint64), dtype_of("i64")).tolist() == [2**63 - 1, 5]


def test_int32_to_half_has_no_rounding_mode() -> None:
    values = np.array([2049, 2051, -2049, 70000], np.int32)
    for mode in RoundMode:
        np.testing.assert_array_equal(cast(values, dtype_of("f16"), mode), [2048, 2052, -2048, np.inf])
    np.testing.assert_array_equal(cast(values, dtype_of("f16"), saturate=True), [2048, 2052, -2048, 65504])


def test_half_and_bfloat16_saturate_on_request() -> None:
    values = np.array([3.4e38, -3.4e38, np.inf, np.nan, 1.0], np.float32)
    largest = float(np.array(0x7F7F, np.uint16).view(ml_dtypes.bfloat16))
    result = cast(values, dtype_of("bf16"), RINT, saturate=True)
    np.testing.assert_array_equal(result.astype(np.float64), [largest, -largest, largest, 0, 1])
    np.testing.assert_array_equal(cast(values, dtype_of("f32"), RINT, saturate=True), values)


@pytest.mark.parametrize("name", ["f16", "bf16", "f64"])
def test_a_float_of_the_same_type_becomes_integral(name: str) -> None:
    values = np.array([0.5, -1.5, 2.5, 0.25], dtype_of(name))
    result = convert(values, dtype_of(name), CEIL)
    assert result.dtype == dtype_of(name)
    assert result.astype(float).tolist() == [1, -1, 3, 1]


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        ("f16", "i64", "from half to int64_t"),
        ("bf16", "f16", "from bfloat16_t to half"),
        ("i8", "i32", "from int8_t to int32_t"),
        ("f32", "i8", "from float to int8_t"),
        ("f16", "f16", "from half to half"),
        ("ui32", "f32", "from uint32_t to float"),
    ],
)
def test_pairs_without_a_cast(src: str, dst: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cast(np.zeros(3, dtype_of(src)), dtype_of(dst))
    assert cast_modes(dtype_of(src), dtype_of(dst)) == frozenset()


def test_documented_modes() -> None:
    assert cast_modes(dtype_of("f32"), dtype_of("f16")) == frozenset(RoundMode)
    assert cast_modes(dtype_of("f32"), dtype_of("bf16")) == frozenset(MODES_WITHOUT_ODD)
    assert cast_modes(dtype_of("f16"), dtype_of("i8")) == frozenset({NONE, *MODES_WITHOUT_ODD})
    assert cast_modes(dtype_of("i64"), dtype_of("i32")) == frozenset({NONE})


def test_mode_numbers_are_those_of_ascend_c() -> None:
    assert [mode.value for mode in RoundMode] == [0, 1, 2, 3, 4, 5, 6]
    assert cast(np.array([2.5], np.float32), dtype_of("i32"), 4).tolist() == [3]
    with pytest.raises(ValueError, match="7"):
        cast(np.array([2.5], np.float32), dtype_of("i32"), 7)
