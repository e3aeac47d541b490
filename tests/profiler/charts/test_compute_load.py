"""Bars and tables of the load."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from npuscope.npu.chip import load_chip
from npuscope.profiler.charts.compute_load import Load, Unit, compute_load
from npuscope.profiler.charts.pipes import busiest
from npuscope.profiler.counters import Counters
from npuscope.trace.schema import Site
from npuscope.trace.timeline import Lane, Step, Timeline

Make, Count = Callable[..., Timeline], Callable[..., Counters]


def test_bars_are_shares_of_the_cores_cycles(make: Make, counters: Count) -> None:
    timeline = make(cycles=8000, blocks=2)
    values = {8: [4000, 2000], 9: 400, 12: [7000, 6000]}
    chart = compute_load(timeline, load_chip("910B4"), counters(timeline, "A2", values))
    shares = {(bar.block, bar.name): bar.value for bar in chart.bars}
    assert shares[0, "Vector"] == 50.0
    assert shares[1, "Vector"] == 25.0
    assert shares[1, "Scalar"] == 5.0
    assert shares[0, "MTE3"] is None
    assert {bar.unit for bar in chart.bars} == {Unit.PERCENT}
    assert chart.bars[0] == Load(0, "vector0", "Vector", Unit.PERCENT, 50.0, 4000.0)
    times = {(item.block, item.name): item.value for item in chart.table}
    assert times[0, "Vector Duration"] == pytest.approx(4000 / 1650)
    assert times[0, "Core Duration"] == pytest.approx(8000 / 1650)


def test_shares_of_a_mixed_kernel_are_those_of_the_task(make: Make, counters: Count) -> None:
    timeline = make(kind="mix", cycles=8000)
    read = counters(timeline, "A2", {10: ("aic", 2000), 8: ("aiv", 1000)})
    half = Counters("A2", read.total_cycles / 2, read.values)
    chart = compute_load(timeline, load_chip("910B4"), half)
    shares = {(bar.core, bar.name): bar.value for bar in chart.bars}
    assert shares["cube0", "Cube"] == 25.0
    assert shares["vector1", "Vector"] == 12.5


def test_operand_types(make: Make, counters: Count) -> None:
    steps = (
        Step(0, "VADD", Lane.VECTOR, Site("x"), dtype="float16"), Step(4, "VMUL", Lane.VECTOR, Site("x"), dtype="half"),
        Step(8, "VCONV", Lane.VECTOR, Site("x"), dtype="int32"), Step(12, "BAR", Lane.VECTOR, Site("x")),
    )  # fmt: skip
    works = ((0, 128), (0, 64), (1, 32), (2, 8), (3, 0))
    rows = tuple(
        {"core": 0, "step": step, "lane": Lane.VECTOR, "start": 0, "end": 1, "work": work, "bytes": 7}
        for step, work in works
    )
    timeline = make(steps=steps, slices=rows)
    chart = compute_load(timeline, load_chip("910B4"), counters(timeline, "A2", {1: 5, 5: 2}))
    counts = {item.name: item.value for item in chart.table if item.unit in (Unit.INSTRUCTIONS, Unit.BYTES)}
    assert counts["Vector F16 Instructions"] == 3
    assert counts["Vector F16 Ops"] == 224
    assert counts["Vector S32 Ops"] == 8
    assert counts["Vector Instructions"] == 5
    assert counts["MTE2 Instructions"] == 2
    assert counts["Process Bytes"] == 35


def test_the_busiest_pipe(make: Make, counters: Count) -> None:
    timeline = make(kind="mix", cycles=1000)
    values = {10: ("aic", 300), 12: [900, 100, 100], 8: ("aiv", 800), 13: 0}
    assert busiest(timeline, load_chip("910B4"), counters(timeline, "A2", values)) == ("MTE2", 0.9)
    assert busiest(timeline, load_chip("910B4"), counters(timeline, "A2", {})) is None
