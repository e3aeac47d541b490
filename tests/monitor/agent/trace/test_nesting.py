"""Slices within slices, and covered time; the expected numbers were worked out by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from npuscope.monitor.agent.trace.parsing.covered import common, covered, merged
from npuscope.monitor.agent.trace.parsing.nesting import nest


def columns(*rows: tuple[int, ...]) -> list[np.ndarray]:
    return [np.array(column, np.int64) for column in zip(*rows, strict=True)]


def test_parents_own_time_and_time_within() -> None:
    # thread, start, end: two threads; a child as long as its parent; neighbours that touch; a moment at an end.
    thread, start, end = columns(
        (1, 0, 100), (1, 10, 40), (1, 10, 20), (1, 40, 60), (2, 5, 50), (1, 100, 120), (1, 20, 20), (1, 100, 120)
    )
    nesting = nest(thread, start, end)
    assert nesting.parent.tolist() == [-1, 0, 1, 0, -1, -1, 1, 5]
    assert nesting.alone(end - start).tolist() == [50, 20, 10, 20, 45, 0, 0, 20]
    assert nesting.within(np.array([1, 0, 2, 4, 8, 0, 16, 32])).tolist() == [23, 18, 2, 4, 8, 32, 16, 32]


def test_slices_that_only_overlap_lie_in_nobody_that_has_ended() -> None:
    thread, start, end = columns((1, 0, 10), (1, 5, 15), (1, 12, 14))
    assert nest(thread, start, end).parent.tolist()[:2] == [-1, 0]
    assert nest(thread, start, end).parent[2] != 0


def test_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert nest(none, none, none).parent.tolist() == []
    assert covered(merged(none, none), np.array([0]), np.array([9])).tolist() == [0]


def test_union_window_and_intersection() -> None:
    one = merged(*columns((0, 10), (5, 20), (30, 40), (40, 45)))
    assert [column.tolist() for column in one] == [[0, 30], [20, 45]]
    assert covered(one, np.array([0, 15, 20, 0]), np.array([100, 35, 30, 5])).tolist() == [35, 10, 0, 5]
    assert [column.tolist() for column in common(one, columns((15, 33)))] == [[15, 30], [20, 33]]


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=12)


@given(SPANS, SPANS)
def test_covered_time_is_that_of_the_moments(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    def moments(spans: list[tuple[int, int]]) -> set[int]:
        return {moment for start, length in spans for moment in range(start, start + length)}

    def cover(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        start, length = columns(*spans)
        return merged(start, start + length)

    window = np.array([10]), np.array([50])
    assert covered(cover(one), *window)[0] == len(moments(one) & set(range(10, 50)))
    assert covered(common(cover(one), cover(other)), *window)[0] == len(
        moments(one) & moments(other) & set(range(10, 50))
    )
