"""Quantisation on the way out of L0C (Fixpipe) and in the vector unit (CastDequant): parameter words and arithmetic.

Sources: hardware.md 5 for the word; the vendor's Fixpipe quantisation and quantisation-with-ReLU pages for the
arithmetic (multiply in float32, round half to even into 9 bits, add the offset, saturate); SetDeqScale and CastDequant
pages for the vector unit.

Every `word` is a uint64, or an array of them that broadcasts against the values: n words for an (m, n) matrix are the
vector forms (VREQ8, VDEQF16, VQF322B8_PRE), one word a column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npuscope.npu.numbers.dtypes import BF16, F16, F32, Array, DType, type_name
from npuscope.npu.numbers.rounding import RoundMode, round_to_float

# Bits of the word; the scale is a float32 of which the unit sees 1 + 8 + 10 bits.
_SCALE_BITS = np.uint64(0xFFFF_E000)
_SHIFT, _SHIFT_ENABLED, _OFFSET, _SIGNED = (np.uint64(bit) for bit in (32, 36, 37, 46))
_OFFSET_RANGE = (-256, 255)  # 9 bits, also what scaled values are clipped to before the offset
_INT16_RANGE = (-32768, 32767)
_MAX_SHIFT = 16


class QuantWord(NamedTuple):
    """Fields of a word: `scale` float32 with 10 mantissa bits, `offset` int16 in [-256, 255], `signed` bool."""

    scale: Array
    offset: Array
    signed: Array


def decode_quant_word(word: Any) -> QuantWord:
    """Scale, offset and sign flag of each uint64 in `word`, arrays of its shape (hardware.md 5)."""
    bits = np.asarray(word).astype(np.uint64)
    scale = (bits & _SCALE_BITS).astype(np.uint32).view(np.float32)
    field = (bits >> _OFFSET & np.uint64(0x1FF)).astype(np.int16)
    return QuantWord(scale, (field ^ 0x100) - np.int16(0x100), (bits >> _SIGNED & np.uint64(1)).astype(np.bool_))


def decode_right_shift(word: Any) -> Array:
    """How far each word shifts int32 accumulators right first, 1 to 16; 0 where MCB (bit 36) is clear (A2, A3)."""
    bits = np.asarray(word).astype(np.uint64)
    enabled = bits >> _SHIFT_ENABLED & np.uint64(1)
    return (enabled * ((bits >> _SHIFT & np.uint64(0xF)) + np.uint64(1))).astype(np.int32)


def encode_quant_word(scale: Any, offset: Any = 0, signed: Any = True, right_shift: Any = 0) -> Array:
    """The uint64 word(s) of these fields, broadcast against each other; `scale` is cut to 10 mantissa bits.

    `right_shift` 1 to 16 sets MCB and N, 0 leaves them clear. Raises ValueError for a scale that the unit does not take
    (infinite, NaN, subnormal) and for an offset or shift out of range.
    """
    scale = np.asarray(scale, np.float32)
    offset, signed, right_shift = np.asarray(offset, np.int64), np.asarray(signed, np.bool_), np.asarray(right_shift)
    if not np.all((np.abs(scale) >= np.finfo(np.float32).tiny) & np.isfinite(scale) | (scale == 0)):
        raise ValueError("a quantisation scale must be 0 or a normal finite float")
    if np.any((offset < _OFFSET_RANGE[0]) | (offset > _OFFSET_RANGE[1])):
        raise ValueError(f"a quantisation offset is from {_OFFSET_RANGE[0]} to {_OFFSET_RANGE[1]}")
    if np.any((right_shift < 0) | (right_shift > _MAX_SHIFT)):
        raise ValueError(f"the right shift before quantisation is from 0 to {_MAX_SHIFT}")
    word = scale.view(np.uint32).astype(np.uint64) & _SCALE_BITS
    word = word | (offset & 0x1FF).astype(np.uint64) << _OFFSET
    word = word | signed.astype(np.uint64) << _SIGNED
    shift = np.where(right_shift > 0, right_shift - 1 | 0x10, 0).astype(np.uint64)  # MCB is the bit above N
    return np.asarray(word | shift << _SHIFT)


def requantise(acc: Array, word: Any, relu: bool = False, *, shifts: bool = True) -> Array:
    """REQ8 and VREQ8: int32 accumulators -> int8, or uint8 where the words' sign flag is clear.

    `shifts=False` is a chip without the right shift (NPU arch 3510). With `relu`, negative accumulators count as 0, so
    that they give the offset. Raises ValueError for another type, and for words of which some are signed and some not.
    """
    _check_type(acc, np.dtype(np.int32))
    return _to_b8(_scaled(_shifted(acc, word, shifts), word, relu), word)


def dequantise_f16(acc: Array, word: Any, relu: bool = False, *, saturate: bool = False, shifts: bool = True) -> Array:
    """DEQF16 and VDEQF16: int32 accumulators -> half, rounded to nearest even; the offset has no effect.

    `saturate` is CTRL[48] clear: too large is ±65504, not an infinity. `shifts` and errors as for `requantise`.
    """
    _check_type(acc, np.dtype(np.int32))
    scaled = _scaled(_shifted(acc, word, shifts), word, relu)
    return round_to_float(scaled, F16, RoundMode.RINT, saturate=saturate)


def quantise_f32_to_b8(acc: Array, word: Any, relu: bool = False) -> Array:
    """QF322B8_PRE and VQF322B8_PRE: float accumulators -> int8 or uint8; NaN counts as 0; errors as `requantise`."""
    _check_type(acc, F32)
    return _to_b8(_scaled(acc, word, relu), word)


def narrow_f32(acc: Array, dst: DType, relu: bool = False, *, saturate: bool = False) -> Array:
    """F322F16 and F322BF16: float accumulators -> half or bfloat16 to nearest even, after ReLU if asked for.

    `saturate` as for `dequantise_f16`. Raises ValueError for other types.
    """
    _check_type(acc, F32)
    if dst not in (F16, BF16):
        raise ValueError(f"Fixpipe narrows float to half or bfloat16_t, not to {type_name(dst)}")
    kept = np.where(acc < 0, np.float32(0), acc) if relu else acc
    return round_to_float(kept, dst, RoundMode.RINT, saturate=saturate)


def cast_dequant_f16(values: Array, scale: Any, *, saturate: bool = False) -> Array:
    """Cast and CastDequant of the vector unit: int32 -> half with SetDeqScale(half scale), computed in float32.

    The unit divides by 2**17 before it multiplies and multiplies by 2**17 after, which changes nothing in float32.
    Raises ValueError for another type than int32.
    """
    _check_type(values, np.dtype(np.int32))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values.astype(F32) * np.asarray(scale, F16).astype(F32)
    return round_to_float(scaled, F16, RoundMode.RINT, saturate=saturate)


def cast_dequant_b8(values: Array, word: Any) -> Array:
    """CastDequant of the vector unit: int16 -> int8 or uint8 by value * scale + offset, saturating.

    Scaled values are rounded to int16 (half to even), not to 9 bits as in Fixpipe. The 16 words of the vector form
    belong to the 16 elements of a 32-byte block: reshape to (..., 16). Errors as `requantise`.
    """
    _check_type(values, np.dtype(np.int16))
    scaled = _scaled(values, word, relu=False)
    return _to_b8(scaled, word, _INT16_RANGE)


def _shifted(acc: Array, word: Any, shifts: bool) -> Array:
    """int32 shifted right into int16 where the word says so."""
    amount = decode_right_shift(word)
    if not shifts or not amount.any():
        return acc
    return np.where(amount > 0, np.clip(acc >> amount, *_INT16_RANGE), acc)


def _scaled(values: Array, word: Any, relu: bool) -> Array:
    wide = values.astype(F32)
    if relu:
        wide = np.where(wide < 0, np.float32(0), wide)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(wide * decode_quant_word(word).scale)


def _to_b8(scaled: Array, word: Any, middle: tuple[int, int] = _OFFSET_RANGE) -> Array:
    """Rounded into the `middle` range, offset added, saturated to int8 or uint8."""
    _, offset, signed = decode_quant_word(word)
    if signed.any() and not signed.all():
        raise ValueError("some quantisation words are signed and some are not; the result has one type")
    dst = np.dtype(np.int8 if signed.all() else np.uint8)
    rounded = np.rint(np.clip(np.where(np.isnan(scaled), 0, scaled), *middle)).astype(np.int32)
    info = np.iinfo(dst)
    return np.clip(rounded + offset, info.min, info.max).astype(dst)


def _check_type(values: Array, dtype: DType) -> None:
    if values.dtype != dtype:
        raise ValueError(f"{type_name(dtype)} values are needed, not {type_name(values.dtype)}")
