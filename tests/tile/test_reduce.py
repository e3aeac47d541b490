"""Reductions and scans by any function, in the order of the elements."""

from __future__ import annotations

from functools import reduce as fold
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuscope.tile import reduce, scaled
from npuscope.tile.affine import Affine


def compose(a1: Any, b1: Any, a2: Any, b2: Any) -> tuple[Any, Any]:
    """Of two linear functions: associative, not commutative."""
    return a1 * a2, b1 * a2 + b2


@pytest.mark.parametrize("axis", [0, 1])
@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 9), columns=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_order_is_kept(axis: int, rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-3, 4, (2, rows, columns)) for _ in range(2))
    shape = (rows, columns)
    got = reduce.reduce_by(compose, axis, shape, a, b)
    forward = reduce.scan_by(compose, axis, False, shape, a, b)
    backward = reduce.scan_by(compose, axis, True, shape, a, b)
    a, b = np.moveaxis(a, axis + 1, -1), np.moveaxis(b, axis + 1, -1)
    for index in np.ndindex(a.shape[:-1]):
        pairs = list(zip(a[index].tolist(), b[index].tolist(), strict=True))
        step = lambda one, other: compose(*one, *other)  # noqa: E731
        assert (got[0][index], got[1][index]) == fold(step, pairs)
        there = [np.moveaxis(part, axis + 1, -1)[index].tolist() for part in forward]
        assert list(zip(*there, strict=True)) == list(accumulate(pairs, step))
        back = [np.moveaxis(part, axis + 1, -1)[index].tolist()[::-1] for part in backward]
        assert list(zip(*back, strict=True)) == list(accumulate(pairs[::-1], step))


def test_rows_are_summed_without_being_spelled_out_by_the_caller() -> None:
    assert reduce.reduce_with(np.add, 0, (8,), Affine(np.array([0, 10]), (2,), (8,), 32)).tolist() == [56, 136]
    assert reduce.scan_with(np.add, 0, True, (4,), Affine(1, (1,), (4,), 32)).tolist() == [[10, 9, 7, 4]]


def test_sums_wrap_in_their_type() -> None:
    assert reduce.reduce_with(np.add, 0, (2,), np.array([[100, 100]], np.int8)).tolist() == [-56]


def test_histograms_leave_out_what_has_no_bin() -> None:
    got = reduce.histogram(
        4, (6,), np.array([[0, 3, 3, 4, -1, 1], [2, 2, 2, 2, 2, 9]]), np.array([[True, True, True, True, True, False]])
    )
    assert got.tolist() == [[1, 0, 0, 2], [0, 0, 5, 0]]


def test_scales_of_four_bit_elements() -> None:
    # 0x21 holds 0.5 (code 1, lower half) and 1.0 (code 2); a scale of 128 doubles.
    value, scale = np.full((1, 2, 16), 0x21, np.uint8), np.array([[[127], [128]]], np.uint8)
    factor = scaled.Factor((2, 16), scaled.FORMATS[4], 1, True, (2, 1))
    assert factor.numbers(value, scale)[0, :, :4].tolist() == [[0.5, 1, 0.5, 1], [1, 2, 1, 2]]
    assert np.isnan(factor.numbers(value, np.full((1, 2, 1), 255, np.uint8))).all()
    rows = scaled.Factor((2, 16), scaled.FORMATS[4], 1, False, ())
    assert rows.numbers(value, None)[0, :, 0].tolist() == [0.5, 1, 0.5, 1]
