"""Quantisation against the published definition, one number at a time in exact Python arithmetic."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.npu.numbers import (
    cast_dequant_b8,
    cast_dequant_f16,
    decode_quant_word,
    decode_right_shift,
    dequantise_f16,
    encode_quant_word,
    narrow_f32,
    quantise_f32_to_b8,
    requantise,
)

pytestmark = pytest.mark.filterwarnings("error")

Array = np.ndarray[Any, Any]


def as_f32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def quantised(value: float, word: int, relu: bool, middle: tuple[int, int] = (-256, 255), shifts: bool = True) -> int:
    """The published steps: shift into int16, float, times scale (0 for negatives with ReLU), 9 bits, offset, 8 bits."""
    if shifts and word >> 36 & 1 and isinstance(value, int):
        value = max(-32768, min(32767, value >> (word >> 32 & 15) + 1))
    scale = struct.unpack("f", struct.pack("I", word & 0xFFFF_E000))[0]
    offset = (word >> 37 & 0x1FF ^ 0x100) - 0x100
    product = as_f32(as_f32(value) * (0.0 if relu and value < 0 else scale))
    total = round(max(middle[0], min(middle[1], product))) + offset
    low, high = (-128, 127) if word >> 46 & 1 else (0, 255)
    return max(low, min(high, total))


def accumulators(shape: tuple[int, ...], seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    small = rng.integers(-600, 600, size)
    large = rng.integers(-(2**31), 2**31, size)
    return np.where(rng.random(size) < 0.7, small, large).astype(np.int32).reshape(shape)


def test_word_layout() -> None:
    # Bits by hand: 0.5 is 0x3F000000; offset -3 is 0x1FD in 9 bits, at 37; the sign flag is bit 46.
    word = 0x3F00_0000 | 0x1FD << 37 | 1 << 46
    assert encode_quant_word(0.5, -3, True).tolist() == word
    assert encode_quant_word(0.5, 0, False).tolist() == 0x3F00_0000
    assert encode_quant_word(2.0, 0, True, right_shift=16).tolist() == 0x4000_0000 | 0x1F << 32 | 1 << 46
    assert encode_quant_word(2.0, 0, True, right_shift=1).tolist() == 0x4000_0000 | 0x10 << 32 | 1 << 46
    scale, offset, signed = decode_quant_word(word)
    assert (scale, offset, signed) == (0.5, -3, True)
    assert scale.dtype == np.float32


def test_the_unit_sees_ten_mantissa_bits() -> None:
    scale = np.array([1 / 3, 0.1, -7.7], np.float32)
    cut = (scale.view(np.uint32) & np.uint32(0xFFFF_E000)).view(np.float32)
    np.testing.assert_array_equal(decode_quant_word(encode_quant_word(scale)).scale, cut)
    np.testing.assert_array_equal(decode_quant_word(scale.view(np.uint32).astype(np.uint64)).scale, cut)
    assert np.all(np.abs(cut - scale) < np.abs(scale) * 2.0**-10)


def test_every_offset_and_shift_round_trips() -> None:
    offsets = np.arange(-256, 256)
    decoded = decode_quant_word(encode_quant_word(1.0, offsets, offsets % 2 == 0))
    np.testing.assert_array_equal(decoded.offset, offsets)
    np.testing.assert_array_equal(decoded.signed, offsets % 2 == 0)
    shifts = np.arange(17)
    np.testing.assert_array_equal(decode_right_shift(encode_quant_word(1.0, -1, True, shifts)), shifts)
    np.testing.assert_array_equal(decode_right_shift(np.uint64(0xF << 32)), 0)  # N without MCB


def test_fields_that_the_unit_does_not_take() -> None:
    for scale in (np.inf, -np.inf, np.nan, 1e-40):
        with pytest.raises(ValueError, match="normal finite"):
            encode_quant_word(np.array([1.0, scale], np.float32))
    assert encode_quant_word(0.0).tolist() == 1 << 46
    for offset in (-257, 256):
        with pytest.raises(ValueError, match="-256 to 255"):
            encode_quant_word(1.0, offset)
    for shift in (-1, 17):
        with pytest.raises(ValueError, match="0 to 16"):
            encode_quant_word(1.0, 0, True, shift)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("scale", "offset", "shift"), [(0.5, 0, 0), (1.0, -256, 0), (0.1, 37, 0), (-0.75, 5, 3)])
def test_requantise(scale: float, offset: int, shift: int, signed: bool, relu: bool) -> None:
    acc = accumulators((17, 13))
    word = encode_quant_word(scale, offset, signed, shift)
    expected = [quantised(value, int(word), relu) for value in acc.ravel().tolist()]
    result = requantise(acc, word, relu)
    assert result.dtype == (np.int8 if signed else np.uint8)
    assert result.shape == acc.shape
    assert result.ravel().tolist() == expected


def test_requantise_by_column() -> None:
    acc = accumulators((9, 19), seed=2)
    rng = np.random.default_rng(3)
    words = encode_quant_word(rng.uniform(0.01, 2, 19), rng.integers(-256, 256, 19), True, rng.integers(0, 17, 19))
    for shifts in (True, False):
        expected = [
            [quantised(value, word, False, shifts=shifts) for value, word in zip(row, words.tolist(), strict=True)]
            for row in acc.tolist()
        ]
        assert requantise(acc, words, shifts=shifts).tolist() == expected


def test_requantise_examples() -> None:
    word = encode_quant_word(0.5, 0, True)
    # Ties to even, then saturation.
    assert requantise(np.array([1, 3, 5, -1, -3, 1000, -1000], np.int32), word).tolist() == [0, 2, 2, 0, -2, 127, -128]
    # The 9-bit step in between: 1000 * 0.5 is 255 before the offset.
    lowered = encode_quant_word(0.5, -200, True)
    assert requantise(np.array([1000], np.int32), lowered).tolist() == [55]
    # ReLU comes before the offset.
    assert requantise(np.array([-8, 8], np.int32), encode_quant_word(0.5, 3, True), relu=True).tolist() == [3, 7]
    assert requantise(np.zeros((0, 4), np.int32), word).shape == (0, 4)


def test_mixed_signs_have_no_one_type() -> None:
    words = encode_quant_word(1.0, 0, np.array([True, False]))
    with pytest.raises(ValueError, match="some are not"):
        requantise(np.zeros((3, 2), np.int32), words)


@pytest.mark.parametrize("relu", [False, True])
def test_quantise_f32_to_b8(relu: bool) -> None:
    rng = np.random.default_rng(4)
    acc = np.concatenate([rng.normal(0, 200, 501), [0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf]])
    acc = acc.astype(np.float32)
    for word in (encode_quant_word(1.0, 0, True), encode_quant_word(0.3, 100, False), encode_quant_word(3.0, -9, True)):
        expected = [quantised(value, int(word), relu) for value in acc.tolist() if np.isfinite(value)]
        result = quantise_f32_to_b8(acc, word, relu)
        assert result[:-2].tolist() == expected
        offset = int(decode_quant_word(word).offset)
        low, high = (-128, 127) if decode_quant_word(word).signed else (0, 255)
        assert result[-2] == min(255 + offset, high)
        assert result[-1] == (max(low, min(offset, high)) if relu else max(-256 + offset, low))
    assert quantise_f32_to_b8(np.array([np.nan], np.float32), encode_quant_word(1.0, 7, True), relu).tolist() == [7]


def test_the_shift_does_not_touch_floats() -> None:
    word = encode_quant_word(1.0, 0, True, right_shift=4)
    assert quantise_f32_to_b8(np.array([96.0], np.float32), word).tolist() == [96]
    assert requantise(np.array([96], np.int32), word).tolist() == [6]


def test_dequantise_f16() -> None:
    acc = accumulators((7, 33), seed=6)
    scale = np.array([2.0**-12, 0.3, 1.0], np.float32)[np.arange(33) % 3]
    words = encode_quant_word(scale, 12, True)  # the offset has no effect here
    cut = decode_quant_word(words).scale
    expected = np.array(
        [[as_f32(as_f32(value) * float(s)) for value, s in zip(row, cut, strict=True)] for row in acc.tolist()]
    )
    with np.errstate(over="ignore"):
        half = expected.astype(np.float16)
    np.testing.assert_array_equal(dequantise_f16(acc, words), half)
    np.testing.assert_array_equal(dequantise_f16(acc, words, saturate=True), np.clip(half, -65504, 65504))
    np.testing.assert_array_equal(dequantise_f16(acc, words, relu=True), np.maximum(half, 0))
    assert np.isinf(half).any()


def test_dequantise_f16_shifts_into_int16() -> None:
    acc = np.array([2**30, -(2**30), 100, -1], np.int32)
    word = encode_quant_word(1.0, 0, True, right_shift=4)
    assert dequantise_f16(acc, word).tolist() == [32768.0, -32768.0, 6.0, -1.0]
    assert dequantise_f16(acc[2:], word, shifts=False).tolist() == [100.0, -1.0]


def test_narrow_f32() -> None:
    acc = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -3.0, 70000, np.nan], np.float32)
    half = narrow_f32(acc, np.dtype(np.float16))
    np.testing.assert_array_equal(half, [1, 1 + 2.0**-9, -3, np.inf, np.nan])
    np.testing.assert_array_equal(narrow_f32(acc, np.dtype(np.float16), relu=True)[1:3], [1 + 2.0**-9, 0])
    np.testing.assert_array_equal(narrow_f32(acc, np.dtype(np.float16), saturate=True)[3:], [65504, 0])
    bfloat = narrow_f32(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8], np.float32), np.dtype(ml_dtypes.bfloat16))
    assert bfloat.astype(float).tolist() == [1, 1 + 2.0**-6]
    with pytest.raises(ValueError, match="int8_t"):
        narrow_f32(acc, np.dtype(np.int8))


def test_vector_dequant_to_half() -> None:
    values = np.array([1, 2049, -7, 2**31 - 1, -(2**31)], np.int32)
    assert cast_dequant_f16(values, 1.0).tolist() == [1.0, 2048.0, -7.0, np.inf, -np.inf]
    assert cast_dequant_f16(values, 2.0**-16).tolist() == [2.0**-16, 2.0**-5, -7 / 2**16, 32768.0, -32768.0]
    assert cast_dequant_f16(values, 1.0, saturate=True).tolist()[3:] == [65504.0, -65504.0]
    # The scale is a half: 0.1 is 0.0999755859375.
    assert cast_dequant_f16(np.array([10000], np.int32), 0.1).tolist() == [np.float16(999.755859375)]


def test_vector_dequant_to_bytes() -> None:
    values = np.arange(-32768, 32768, 37).astype(np.int16)
    for word in (encode_quant_word(0.01, 20, True), encode_quant_word(0.3, -256, False), encode_quant_word(5.0, 255)):
        expected = [quantised(value, int(word), False, (-32768, 32767), shifts=False) for value in values.tolist()]
        assert cast_dequant_b8(values, word).tolist() == expected
    blocks = values[: 16 * 5].reshape(5, 16)
    words = encode_quant_word(np.linspace(0.001, 0.01, 16), np.arange(16), True)
    expected_blocks = [
        [quantised(value, word, False, (-32768, 32767)) for value, word in zip(row, words.tolist(), strict=True)]
        for row in blocks.tolist()
    ]
    assert cast_dequant_b8(blocks, words).tolist() == expected_blocks


def test_types_are_checked() -> None:
    word = encode_quant_word(1.0)
    with pytest.raises(ValueError, match="int32_t values are needed, not float"):
        requantise(np.zeros(2, np.float32), word)
    with pytest.raises(ValueError, match="int32_t"):
        dequantise_f16(np.zeros(2, np.int16), word)
    with pytest.raises(ValueError, match="float values"):
        quantise_f32_to_b8(np.zeros(2, np.int32), word)
    with pytest.raises(ValueError, match="int16_t"):
        cast_dequant_b8(np.zeros(2, np.int32), word)
    with pytest.raises(ValueError, match="int32_t"):
        cast_dequant_f16(np.zeros(2, np.int16), 1.0)
