"""The cache map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npuscope.npu.chip import load_chip
from npuscope.profiler.charts.cache_map import cache_map
from npuscope.trace.timeline import UNKNOWN, Timeline

Make = Callable[..., Timeline]


def test_lines_and_whose_they_are(make: Make) -> None:
    rows = np.array([[2, 1024, 3, 1], [0, 512, 0, 4], [0, 1024, 1, 0], [1, 4096, 0, 0], [5, 0, UNKNOWN, UNKNOWN]]).T
    chart = cache_map(make(lines=rows), load_chip("910B4"))
    assert chart is not None
    assert chart.size == 512
    assert chart.address.tolist() == [512, 1024, 4096]
    assert chart.hits.tolist() == [0, 4, 0]
    assert chart.misses.tolist() == [4, 1, 0]
    assert [chart.steps(row).tolist() for row in range(3)] == [[0], [0, 2], [1]]
    assert chart.pair_hits.tolist() == [0, 1, 3, 0]
    assert chart.pair_misses.tolist() == [4, 0, 1, 0]
    assert chart.rate().tolist() == [0.0, 80.0, 0.0]


def test_a_source_that_knows_no_cache(make: Make) -> None:
    assert cache_map(make(), load_chip("910B4")) is None
