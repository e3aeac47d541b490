"""Layouts of operands: shapes, byte offsets, footprints, masks."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.npu.layout import bit_mask, contiguous, prefix_mask, repeats, strided
from npuscope.trace.footprint import FOOTPRINTS


def touched(layout: object) -> set[int]:
    return set(FOOTPRINTS[layout.number].offsets().tolist())  # type: ignore[attr-defined]


@pytest.mark.parametrize(("count", "itemsize"), [(0, 4), (1, 2), (77, 4), (128, 1), (33, 8)])
def test_contiguous_covers_each_byte_once(count: int, itemsize: int) -> None:
    layout = contiguous(count, itemsize)
    assert layout.shape == (count,)
    assert touched(layout) == set(range(count * itemsize))
    assert layout.starts().tolist() == [index * itemsize for index in range(count)]


@pytest.mark.parametrize(
    ("shape", "strides", "itemsize"),
    [((3, 4), (64, 4), 4), ((2, 3, 5), (100, 20, 2), 2), ((4,), (-8,), 4), ((2, 2), (0, 4), 4), ((2, 0), (8, 4), 4)],
)
def test_strided_matches_its_definition(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
    layout = strided(shape, strides, itemsize)
    starts = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(shape)]
    assert layout.starts().reshape(-1).tolist() == starts
    assert touched(layout) == {start + byte for start in starts for byte in range(itemsize)}


def test_runs_that_continue_one_another_are_one_footprint() -> None:
    assert strided((4, 8, 16), (256, 32, 2), 2).number == contiguous(512, 2).number
    footprint = FOOTPRINTS[strided((4, 8, 16), (512, 32, 2), 2).number]
    assert (footprint.nbytes, footprint.loops) == (256, ((4, 512),))


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize(("block_stride", "repeat_stride"), [(1, 8), (2, 16), (1, 0), (3, 1)])
def test_repeats_follow_the_address_formula(itemsize: int, block_stride: int, repeat_stride: int) -> None:
    layout = repeats(3, block_stride, repeat_stride, itemsize)
    lanes = 32 // itemsize
    assert layout.shape == (3, 8, lanes)
    for repeat, block, lane in ((0, 0, 0), (1, 2, lanes - 1), (2, 7, 0)):
        expected = 32 * (block * block_stride + repeat * repeat_stride) + lane * itemsize
        assert layout.starts()[repeat, block, lane] == expected


def test_masked_lanes_are_not_touched() -> None:
    mask = bit_mask((0b1010, 1), 128)
    layout = repeats(2, 1, 8, 2, mask)
    lanes = (1, 3, 64)
    assert touched(layout) == {repeat * 256 + lane * 2 + byte for repeat in (0, 1) for lane in lanes for byte in (0, 1)}
    assert layout.mask is not None
    assert np.flatnonzero(layout.mask.reshape(-1)).tolist() == list(lanes)


def test_an_empty_mask_touches_nothing() -> None:
    layout = repeats(4, 1, 8, 4, bytes(64))
    assert FOOTPRINTS[layout.number].empty
    assert (layout.low, layout.high) == (0, 0)


@pytest.mark.parametrize(("active", "lanes"), [(0, 64), (5, 64), (64, 64), (128, 128)])
def test_prefix_mask(active: int, lanes: int) -> None:
    assert prefix_mask(active, lanes) == bytes([1] * active + [0] * (lanes - active))


def test_bit_mask_has_word_0_for_the_first_64_lanes() -> None:
    mask = np.frombuffer(bit_mask((1 << 63, 0b11), 128), np.bool_)
    assert np.flatnonzero(mask).tolist() == [63, 64, 65]
    assert bit_mask((-1,), 64) == b"\1" * 64
