"""Levels and sentences of occupancy (opprof.md 3.8)."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, sqrt

import numpy as np
import pytest

from npuscope.npu.chip import load_chip
from npuscope.profiler.charts.occupancy import CoreLoad, advice, compare, occupancy
from npuscope.profiler.counters import Counters
from npuscope.trace.timeline import Timeline

Make, Count = Callable[..., Timeline], Callable[..., Counters]


def core(
    block: int, cycles: int, type: str = "vector", number: int = 0, moved: int = 10, rate: float = 50.0
) -> CoreLoad:
    return CoreLoad(block, type, number, cycles, moved, rate)


def said(cores: list[CoreLoad]) -> list[str]:
    return advice(cores, compare(cores)[1])


def test_one_slow_core_is_named() -> None:
    cores = [core(0, 100), core(1, 100), core(2, 100), core(3, 200)]
    assert said(cores) == ["vector0 of core[3] take more time than other vector cores"]
    levels = compare(cores)[0]
    # mean 125, deviation 25 * sqrt(3): z of the slow one is sqrt(3)
    assert levels[3]["cycles"] == pytest.approx(10 / (1 + exp(-sqrt(3))))
    assert levels[0]["cycles"] == pytest.approx(10 / (1 + exp(1 / sqrt(3))))


def test_equal_cores_say_nothing() -> None:
    cores = [core(block, 100) for block in range(4)]
    assert said(cores) == []
    assert all(level == {"cycles": 0.0, "throughput": 0.0, "hit_rate": 0.0} for level in compare(cores)[0])


def test_a_difference_that_nobody_could_see_is_not_told() -> None:
    assert said([core(0, 100_000), core(1, 100_000), core(2, 100_001)]) == []


def test_types_are_held_against_their_own() -> None:
    cores = [core(0, 900, "cube"), core(0, 100), core(0, 100, number=1), core(1, 900, "cube"), core(1, 100),
             core(1, 300, number=1)]  # fmt: skip
    assert said(cores) == ["vector1 of core[1] take more time than other vector cores"]


def test_each_dimension_has_its_sentence() -> None:
    cores = [core(0, 100), core(1, 100), core(2, 100, moved=30, rate=10.0)]
    assert said(cores) == [
        "vector0 of core[2] write/read more data than other vector cores",
        "vector0 of core[2] cache hit rate lower than other vector cores",
    ]


def test_several_cores_are_named_together() -> None:
    slow = [core(block, 200 if block in (1, 4) else 100) for block in range(8)]
    assert said(slow) == ["vector0 of core[1, 4] take more time than other vector cores"]


def test_a_core_without_a_figure_is_not_compared() -> None:
    cores = [core(0, 100), CoreLoad(1, "vector", 0, 100, None, None)]
    assert said(cores) == []
    assert list(compare(cores)[0][1]) == ["cycles"]


def test_figures_come_from_the_counters(make: Make, counters: Count) -> None:
    timeline = make(blocks=3, cycles=1000)
    read = counters(timeline, "A2", {1292: 5, 1293: [1, 1, 7], 1294: [1, 1, 6], 1284: 3, 1286: 1, 1280: 0, 1282: 0})
    slow = np.array([500.0, 500.0, 900.0])
    chart = occupancy(timeline, load_chip("910B4"), Counters("A2", slow, read.values))
    assert [one.cycles for one in chart.cores] == [500, 500, 900]
    assert [one.throughput for one in chart.cores] == [7 * 128, 7 * 128, 18 * 128]
    assert chart.cores[0].hit_rate == 75.0
    assert chart.cores[0].instructions is None
    assert chart.advice == (
        "vector0 of core[2] take more time than other vector cores",
        "vector0 of core[2] write/read more data than other vector cores",
    )
    assert not chart.cores[2].balanced


def test_simt_instructions_of_a5(make: Make, counters: Count) -> None:
    timeline = make("Ascend950PR", blocks=2, cycles=1000)
    values = {1466: [30, 300], 1467: [10, 100], 1468: [20, 200], 1284: [30, 300]}
    chart = occupancy(timeline, load_chip("950PR"), counters(timeline, "A5", values))
    assert [one.instructions for one in chart.cores] == [60, 600]
    assert [one.per_cycle for one in chart.cores] == [2.0, 2.0]
    assert chart.advice == ("vector0 of core[1] execute more instructions than other vector cores",)
