"""The statistics against tables and hand arithmetic."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from npuscope.monitor.analysis.statistics import (
    binomial_tail,
    change,
    deviation,
    independent,
    median_interval,
    peers_median,
    tried,
)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_the_median_of_the_others_is_that_of_the_standard_library(ranks: int) -> None:
    random = np.random.default_rng(ranks)
    values = random.integers(0, 6, (ranks, 40)).astype(float)  # with many equal values
    values[random.random(values.shape) < 0.15] = np.nan
    found = peers_median(values)
    for row, step in np.ndindex(*values.shape):
        others = [value for value in np.delete(values[:, step], row).tolist() if not math.isnan(value)]
        if math.isnan(values[row, step]) or not others:
            assert math.isnan(found[row, step])
        else:
            assert found[row, step] == statistics.median(others)


def test_tails_of_the_binomial_distribution() -> None:
    assert binomial_tail(8, 10, 0.5) == pytest.approx(56 / 1024)
    assert binomial_tail(10, 10, 0.5) == pytest.approx(1 / 1024)
    assert binomial_tail(2, 3, 0.25) == pytest.approx(3 * 0.0625 * 0.75 + 0.015625)
    assert binomial_tail(0, 10, 0.1) == 1
    assert binomial_tail(11, 10, 0.5) == 0
    exact = sum(math.comb(200, k) for k in range(150, 201)) / 2**200
    assert binomial_tail(150, 200, 0.5) == pytest.approx(exact)


def test_steps_that_are_alike_count_for_less() -> None:
    random = np.random.default_rng(0)
    alone = (random.random((1, 4000)) < 0.5).astype(float)
    tens = np.repeat((random.random((1, 400)) < 0.5).astype(float), 10, 1)
    assert independent(alone)[0] > 3600
    # Blocks of ten: neighbours agree 9 times in 10, half of the rest by chance: r = 0.9, 4000 * 0.1 / 1.9 = 210.
    assert independent(tens)[0] == pytest.approx(210, rel=0.15)


def test_deviation_and_interval() -> None:
    normal = np.random.default_rng(1).normal(5, 2, 20_000)
    assert deviation(normal) == pytest.approx(2, rel=0.05)
    assert deviation(np.array([1.0, 1.0, 1.0, 100.0])) == 0
    low, high = median_interval(np.arange(1.0, 101.0))
    # 49.5 -+ 1.96 * sqrt(100) / 2 = 39.7 and 59.3, rounded outwards: the 40th and 61st values.
    assert (low, high) == (40.0, 61.0)


def test_a_change_in_time() -> None:
    noise = np.random.default_rng(2).normal(0, 1, 100)
    assert change(noise) is None
    assert change(noise + 10) is None
    late = change(np.where(np.arange(100) >= 60, 10, 0) + noise)
    assert late and late.at == 60 and late.before < 1 < 9 < late.after
    early = change(np.where(np.arange(100) < 10, 10, 0) + noise)
    assert early and early.at == 10 and early.before > early.after


def test_the_sign_test_needs_more_than_the_margin() -> None:
    random = np.random.default_rng(3)
    values = random.normal(100, 3, (8, 200))
    values[2] += 5
    trials = tried(values, margin=2, costs=0.5)
    assert int(np.argmin(trials.steady)) == 2 and trials.steady[2] < 1e-9
    assert np.delete(trials.steady, 2).min() > 1e-3
    values[2] -= 4  # 1 above the others: below the margin, whatever the number of steps
    assert tried(values, margin=2, costs=0.5).steady[2] > 1e-3
