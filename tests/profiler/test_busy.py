"""Cycles at work against counting them one by one."""

from __future__ import annotations

import numpy as np
from made_timeline import Maker

from npuscope.profiler.busy import Working, busy, union_lengths
from npuscope.trace.timeline import Lane


def test_unions_are_what_counting_cycles_gives() -> None:
    random = np.random.default_rng(1)
    group, start = random.integers(0, 7, 500), random.integers(0, 900, 500)
    end = start + random.integers(0, 12, 500)
    cycles = np.zeros((7, 1000), bool)
    for one, first, last in zip(group, start, end, strict=True):
        cycles[one, first:last] = True
    assert union_lengths(group, start, end, 7).tolist() == cycles.sum(1).tolist()
    assert union_lengths(group[:0], start[:0], end[:0], 3).tolist() == [0, 0, 0]


def test_waits_are_no_work() -> None:
    maker = Maker("vector", 2)
    maker.slice("WAIT_FLAG", Lane.VECTOR, 0, 100)
    maker.slice("VADD", Lane.VECTOR, 100, 130)
    maker.slice("VMUL", Lane.VECTOR, 120, 150)  # starts while the one before is still under way
    maker.slice("VADD", Lane.VECTOR, 10, 20, core=1)
    found = busy(maker.timeline())
    assert found.lane(Lane.VECTOR).tolist() == [50, 10]
    assert found.wait[Lane.VECTOR].tolist() == [100, 0]


def test_overlap() -> None:
    maker = Maker()
    maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 0, 100)
    maker.slice("VADD", Lane.VECTOR, 80, 140)
    assert Working(maker.timeline()).together((Lane.MTE2,), (Lane.VECTOR, Lane.CUBE))[:, 0].tolist() == [100, 60, 20]
