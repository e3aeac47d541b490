"""Functions of the bits of integers."""

from __future__ import annotations

import numpy as np

from npuscope.tile.affine import SIGNED
from npuscope.tile.integers import UNSIGNED


def bare(value: np.ndarray) -> np.ndarray:
    """The same bits as integers without a sign."""
    return np.ascontiguousarray(value).view(UNSIGNED.get(value.dtype, value.dtype))


def _int32(value: np.ndarray) -> np.ndarray:
    return value.astype(np.int32)


def count_ones(value: np.ndarray) -> np.ndarray:
    """How many bits are set."""
    octets = bare(value)[..., None].view(np.uint8)
    return _ONES[octets].sum(axis=-1, dtype=np.int32)


_ONES = np.array([bin(number).count("1") for number in range(256)], np.uint8)


def _length(value: np.ndarray) -> np.ndarray:
    """How many bits the number takes: the place above its highest set bit."""
    left = bare(value).astype(np.uint64)
    result = np.zeros(left.shape, np.int32)
    for width in (32, 16, 8, 4, 2, 1):
        big = left >= np.uint64(1 << width)
        result += np.where(big, width, 0).astype(np.int32)
        left = np.where(big, left >> np.uint64(width), left)
    return result + (left != 0)


def leading_zeros(value: np.ndarray) -> np.ndarray:
    """Zeros above the highest set bit."""
    return _int32(value.dtype.itemsize * 8 - _length(value))


def trailing_zeros(value: np.ndarray) -> np.ndarray:
    """Zeros below the lowest set bit; the width when there is none."""
    plain = bare(value)
    lowest = plain & (~plain + plain.dtype.type(1))
    return _int32(np.where(plain == 0, value.dtype.itemsize * 8, _length(lowest) - 1))


def first_one(value: np.ndarray) -> np.ndarray:
    """The place of the lowest set bit, counted from 1; 0 when there is none."""
    return _int32(np.where(value == 0, 0, trailing_zeros(value) + 1))


def reversed_bits(value: np.ndarray) -> np.ndarray:
    """The lowest bit first."""
    octets = _REVERSED[bare(value)[..., None].view(np.uint8)]
    turned = np.ascontiguousarray(octets[..., ::-1]).view(UNSIGNED.get(value.dtype, value.dtype))[..., 0]
    return turned.view(value.dtype)


_REVERSED = np.array([int(f"{number:08b}"[::-1], 2) for number in range(256)], np.uint8)


def permuted_bytes(one: np.ndarray, other: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """PRMT: four bytes out of the eight of `other:one`, each chosen by four bits (the highest copies a sign)."""
    one, other, selector = np.broadcast_arrays(one, other, selector)
    octets = np.stack([bare(one).astype(np.uint32), bare(other).astype(np.uint32)], axis=-1).view(np.uint8)
    places = (bare(selector)[..., None] >> np.arange(0, 16, 4, dtype=np.uint32)) & np.uint32(15)
    chosen = np.take_along_axis(octets, (places & 7).astype(np.int64), axis=-1)
    signs = np.where(chosen & 0x80, np.uint8(0xFF), np.uint8(0))
    result = np.ascontiguousarray(np.where(places & 8, signs, chosen)).view(np.uint32)[..., 0]
    return result.view(SIGNED[32]) if one.dtype.kind == "i" else result


def three_input_logic(one: np.ndarray, other: np.ndarray, third: np.ndarray, table: int) -> np.ndarray:
    """LOP3: for each bit the entry of an eight-row truth table; `one` is the highest bit of the row's number."""
    result = np.zeros(np.broadcast_shapes(one.shape, other.shape, third.shape), one.dtype)
    for row in range(8):
        if table >> row & 1:
            parts = [value if row >> place & 1 else ~value for value, place in ((one, 2), (other, 1), (third, 0))]
            result = result | (parts[0] & parts[1] & parts[2])
    return result


def absolute_difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """|one - other| without a sign, for numbers with one or without."""
    kind = UNSIGNED.get(one.dtype, one.dtype)
    larger, smaller = np.maximum(one, other), np.minimum(one, other)
    return bare(np.asarray(larger)).astype(kind) - bare(np.asarray(smaller)).astype(kind)


def half_sum(one: np.ndarray, other: np.ndarray, upwards: bool) -> np.ndarray:
    """(one + other) / 2, rounded down or up, without overflow."""
    odd = (one ^ other) & one.dtype.type(1)
    down = (one >> one.dtype.type(1)) + (other >> one.dtype.type(1)) + (one & other & one.dtype.type(1))
    return down + odd if upwards else down
