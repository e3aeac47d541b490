"""Covered time, by hand."""

from __future__ import annotations

import numpy as np

from npuscope.monitor.analysis.intervals import Cover, step_of


def test_overlapping_ranges_count_once() -> None:
    # 10-20, 15-30 and 18-19 are 10-30; 40-50 stands alone; 60-60 is nothing.
    cover = Cover(np.array([40, 10, 15, 18, 60]), np.array([50, 20, 30, 19, 60]))
    assert cover.start.tolist() == [10, 40] and cover.end.tolist() == [30, 50]
    starts, ends = np.array([0, 0, 12, 25, 30, 45, 55]), np.array([100, 10, 14, 45, 40, 47, 99])
    assert cover.within(starts, ends).tolist() == [30, 0, 2, 10, 0, 2, 0]


def test_nothing_covers_nothing() -> None:
    cover = Cover(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert cover.within(np.array([0, 5]), np.array([10, 6])).tolist() == [0, 0]


def test_the_step_of_a_moment() -> None:
    starts, ends = np.array([10, 20, 40]), np.array([20, 30, 50])
    assert step_of(np.array([9, 10, 19, 20, 30, 45, 50]), starts, ends).tolist() == [-1, 0, 0, 1, -1, 2, -1]
    assert step_of(np.array([1, 2]), np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == [-1, -1]
