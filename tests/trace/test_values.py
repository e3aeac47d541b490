"""Which values a column has, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuscope.trace import values
from npuscope.trace.values import among, distinct, few_distinct

WHOLE = st.integers(-(2**63), 2**63 - 1)


def like_numpy(column: np.ndarray) -> None:
    first, which = distinct(column)
    _, expected = np.unique(column, return_index=True)
    assert (first == np.sort(expected)).all()
    assert (column[first][which] == column).all()


@given(st.lists(WHOLE | st.integers(-2, 2)))
def test_distinct_values_in_the_order_of_their_first_use(column: list[int]) -> None:
    like_numpy(np.array(column, np.int64))


@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_values_that_share_a_place_in_the_table(count: int, kind: type[np.generic]) -> None:
    drawn = np.random.default_rng(0).integers(0, count, 300_000).astype(kind)
    like_numpy(drawn * kind(0x9E3779B97F4A7C1))


def test_a_column_with_gaps_between_its_numbers() -> None:
    like_numpy(np.arange(12, dtype=np.int64).reshape(3, 4)[:, 1])


@given(st.lists(st.integers(0, 50)))
def test_few_distinct_values_ascend(column: list[int]) -> None:
    numbers, which = few_distinct(np.array(column, np.int64), 51)
    expected, places = np.unique(column, return_inverse=True)
    assert numbers.tolist() == expected.tolist() and which.tolist() == places.tolist()
    few = few_distinct(np.array(column, np.int64), values.MOST + 1)
    assert few[0].tolist() == numbers.tolist() and few[1].tolist() == which.tolist()


@given(st.lists(st.integers(0, 50)), st.sets(st.integers(0, 80)))
def test_rows_that_are_among_some(column: list[int], wanted: set[int]) -> None:
    assert among(np.array(column, np.int64), wanted).tolist() == [one in wanted for one in column]
