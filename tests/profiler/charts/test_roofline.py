"""Rooflines by hand arithmetic (opprof.md 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.npu.chip import load_chip
from npuscope.profiler.charts.operations import ELEMENTS, VECTOR_CLASSES, precision
from npuscope.profiler.charts.roofline import Roof, Roofline, RooflineChart, advice, ratio, roofline
from npuscope.profiler.counters import Counters
from npuscope.profiler.formulas import table_columns
from npuscope.trace.schema import Site
from npuscope.trace.timeline import Lane, Step, Timeline

Make, Count = Callable[..., Timeline], Callable[..., Counters]
TIB = 2**40


def mmad(make: Make, chip: str, dtype: str, macs: int, **more: Any) -> Timeline:
    """A launch of one block that multiplies once."""
    steps = (Step(0, "MMAD", Lane.CUBE, Site("mmad"), dtype=dtype),)
    rows = ({"core": 0, "step": 0, "lane": Lane.CUBE, "start": 0, "end": 9, "work": macs, "bytes": 0, "threads": 0},)
    return make(chip, "cube", steps=steps, slices=rows, **more)


def lines(chart: Roofline, title: str) -> dict[str, Roof]:
    return {line.path: line for picture in chart.charts if picture.title == title for line in picture.lines}


def test_a_cube_kernel(make: Make, counters: Count) -> None:
    timeline = mmad(make, "Ascend910B1", "float16", 16**3 * 1000, cycles=1850 * 10)  # 10 us
    chip = load_chip("910B1")
    values = {50: 100, 518: 0, 49: 300, 28: 200, 34: 100, 524: 40, 19: 10, 1286: 30, 1290: 10, 156: 2, 1282: 5, 1280: 7,
              1284: 20, 1288: 12, 12: 9000}  # fmt: skip
    chart = roofline(timeline, chip, counters(timeline, "A2", values))
    assert [picture.title for picture in chart.charts] == [
        "GM/L2", "Memory Unit(Cube)", "Pipeline(Cube)", "Memory Transfer(Cube)",
    ]  # fmt: skip
    ops = 2 * 16**3 * 1000
    unit = lines(chart, "Memory Unit(Cube)")
    assert unit["Write to L1"].unit == "Cube_FP(100%)"
    assert unit["Write to L1"].peak == pytest.approx(8192 * 1850e6 * 24 / 1e12)
    assert unit["Write to L1"].bandwidth == pytest.approx(256 * 1850e6 * 24 / TIB)
    assert unit["Write to L1"].x == pytest.approx(ops / 25600)
    assert unit["Write to L1"].y == pytest.approx(ops / 10e-6 / 1e12)
    assert unit["L1 Read + Write"].x == pytest.approx(ops / (25600 + 300 * 128))
    assert unit["Write to L0B"].bandwidth == pytest.approx(128 * 1850e6 * 24 / TIB)
    assert unit["Read from L0C"].x == pytest.approx(ops / (40 * 128))
    main = lines(chart, "GM/L2")
    gm = 40 * 128 + 2 * 512
    assert main["GM Read + Write"].x == pytest.approx(ops / gm)
    assert main["GM Read + Write"].bandwidth == pytest.approx(1.8)
    assert main["L2 Read + Write"].x == pytest.approx(ops / (gm + 7 * 512 + 32 * 128))
    pipes = lines(chart, "Pipeline(Cube)")
    weighted = (51200 * 437.5 + 12800 * 210.5) / 64000
    assert pipes["MTE1"].bandwidth == pytest.approx(weighted * 24 / 1024)
    assert pipes["FIXP"].x == pytest.approx(ops / (40 * 128))
    moves = lines(chart, "Memory Transfer(Cube)")
    assert moves["L0C to GM"].bandwidth == pytest.approx(209.32 * 24 / 1024)
    assert "L0C to L1" not in moves  # nothing took that way


def test_a_vector_kernel(make: Make, counters: Count) -> None:
    timeline = make("Ascend910B1", cycles=1850)
    values = {75: 100, 76: 0, 77: 0, 174: 0, 78: 50, 186: 0, 79: 0, 62: 64, 61: 32, 67: 64, 68: 32, 8: 150}
    chart = roofline(timeline, load_chip("910B1"), counters(timeline, "A2", values))
    unit = lines(chart, "Memory Unit(Vector)")["Vector Read UB"]
    ops = 100 * 64 + 50 * 64
    assert unit.unit == "Vec_FP32(67%),Vec_S32(33%)"
    assert unit.peak == pytest.approx(ops * 1850e6 * 48 / 150 / 1e12)
    assert unit.x == pytest.approx(ops / (64 * 256))
    assert unit.y == pytest.approx(ops / 1e-6 / 1e12)
    assert unit.bandwidth == pytest.approx(512 * 1850e6 * 48 / TIB)
    assert lines(chart, "Pipeline(Vector)")["MTE2 vector"].bandwidth == pytest.approx(220.06 * 48 / 1024)
    assert lines(chart, "Memory Transfer(Vector)")["UB to GM"].bandwidth == pytest.approx(186.8 * 48 / 1024)


@pytest.mark.parametrize(
    ("dtype", "name", "rate"),
    [
        ("float32", "Single Precision", 4096), ("half", "Half Precision", 8192), ("bfloat16", "Half Precision", 8192),
        ("int8", "Integer", 16384), ("float8_e4m3fn", "Quarter Precision", 16384),
        ("fp4x2_e2m1_t", "Eighth Precision", 32768),
    ],
)  # fmt: skip
def test_precision_classes_of_a5(make: Make, counters: Count, dtype: str, name: str, rate: int) -> None:
    assert precision(dtype) == name
    timeline = mmad(make, "Ascend950PR", dtype, 4096, cycles=1650)
    chart = roofline(
        timeline, load_chip("950PR"), counters(timeline, "A5", {1801: 10, 1061: 3, 1062: 0, 1064: 0, 1065: 0, 1060: 1})
    )
    unit = lines(chart, "Memory Unit(Cube)")["Write to L1"]
    assert (unit.unit, unit.peak) == (name, pytest.approx(rate * 1650e6 * 32 / 1e12))
    assert lines(chart, "GM/L2")["GM Read + Write"].unit == f"Cube {name}"
    assert "Pipeline(Vector)" not in [picture.title for picture in chart.charts]


def test_simt_of_a5(make: Make, counters: Count) -> None:
    steps = (
        Step(0, "FADD", Lane.VECTOR, Site("x"), dtype="float32"), Step(4, "IADD", Lane.VECTOR, Site("x"), dtype="int32"),
    )  # fmt: skip
    rows = tuple(
        {"core": 0, "step": n, "lane": Lane.VECTOR, "start": 0, "end": 1, "work": 0, "threads": 32 - 16 * n}
        for n in (0, 1)
    )
    timeline = make("Ascend950PR", steps=steps, slices=rows, cycles=1650)
    chart = roofline(timeline, load_chip("950PR"), counters(timeline, "A5", {1407: 2, 1408: 0, 1397: 1, 1398: 1}))
    found = {line.unit: line for picture in chart.charts for line in picture.lines if line.path == "SIMT VF"}
    assert found["Float"].peak == pytest.approx(32 * 4 * 64 * 1650e6 / 1e12)
    assert found["Integer"].peak == pytest.approx(16 * 4 * 64 * 1650e6 / 1e12)
    assert found["Integer"].x == pytest.approx(16 / (4 * 128))


def test_integers_of_a2(make: Make, counters: Count) -> None:
    timeline = mmad(make, "Ascend910B1", "int8", 8192, cycles=1850)
    chart = roofline(timeline, load_chip("910B1"), counters(timeline, "A2", {50: 4, 518: 0}))
    unit = lines(chart, "Memory Unit(Cube)")["Write to L1"]
    assert unit.unit == "Cube_INT(100%)"
    assert unit.peak == pytest.approx(16384 * 1850e6 * 24 / 1e12)


def test_310p_has_one_picture(make: Make, counters: Count) -> None:
    timeline = make("Ascend310P3", "coupled", cycles=1060)
    chart = roofline(timeline, load_chip("310P3"), counters(timeline, "310P", {75: 10, 62: 8, 67: 5, 68: 5, 61: 4}))
    assert [picture.title for picture in chart.charts] == ["Memory Unit"]
    assert lines(chart, "Memory Unit")["Write to UB"].x == pytest.approx(640 / 128)


def test_nothing_computed_nothing_drawn(make: Make, counters: Count) -> None:
    timeline = make()
    chart = roofline(timeline, load_chip("910B4"), counters(timeline, "A2", {62: 64}))
    assert chart == Roofline((), "")


def test_ratios() -> None:
    assert ratio(x=2.0, y=1.0, bandwidth=1.0, peak=10.0) == 0.5  # on the slope
    assert ratio(x=100.0, y=5.0, bandwidth=1.0, peak=10.0) == 0.5  # under the flat part
    assert ratio(x=100.0, y=10.0, bandwidth=1.0, peak=10.0) is None
    assert ratio(x=2.0, y=3.0, bandwidth=1.0, peak=10.0) is None
    assert ratio(x=2.0, y=1.0, bandwidth=0.0, peak=10.0) is None


@pytest.mark.parametrize(
    ("x", "y", "pipe", "text"),
    [
        (100.0, 9.0, ("MTE2", 0.95), "compute bound"),
        (5.0, 4.5, ("Cube", 0.1), "memory bound"),
        (5.0, 1.0, ("MTE2", 0.7), "latency bound:pipeline caused"),
        (5.0, 1.0, None, "latency bound:pipeline caused"),
        (5.0, 1.0, ("MTE2", 0.9), "latency bound:memory caused"),
        (5.0, 1.0, ("Vector", 0.8), "latency bound:compute caused"),
    ],
)
def test_the_sentence(x: float, y: float, pipe: tuple[str, float] | None, text: str) -> None:
    good = Roof("u", 10.0, "p", 1.0, x, y, ratio(x, y, 1.0, 10.0))
    poor = Roof("u", 10.0, "q", 1.0, 5.0, 0.1, ratio(5.0, 0.1, 1.0, 10.0))
    none = Roof("u", 10.0, "r", 0.0, 5.0, 0.1, None)
    assert advice((RooflineChart("a", (poor, none)), RooflineChart("b", (good,))), pipe) == text


@pytest.mark.parametrize(
    ("chip", "rates"),
    [
        ("910B1", {"Integer": 16384, "Single Precision": 4096, "Half Precision": 8192}),
        ("310P3", {"Integer": 16384, "Single Precision": 4096, "Half Precision": 8192}),
        ("Ascend950PR_9589", {
            "Integer": 16384, "Single Precision": 4096, "Half Precision": 8192, "Quarter Precision": 16384,
            "Eighth Precision": 32768,
        }),
    ],
)  # fmt: skip
def test_operations_of_a_cube(chip: str, rates: dict[str, int]) -> None:
    """opprof.md 6.4."""
    assert {kind: load_chip(chip).cube_operations(ELEMENTS[kind]) for kind in rates} == rates


@pytest.mark.parametrize("columns", ["A2", "310P"])
def test_classes_of_vector_work_are_those_of_vec_fops(columns: str) -> None:
    """The chart names the parts of the sum that the metric table has as one figure."""
    column = next(one for one in table_columns(columns)["ArithmeticUtilization"] if one.name.endswith("vec_fops"))
    events = {number: float(1000 + number**2) for terms, _ in VECTOR_CLASSES[columns].values() for number in terms}
    summed = sum(
        sum(factor * events[number] for number, factor in terms.items()) * each
        for terms, each in VECTOR_CLASSES[columns].values()
    )
    given = {name: np.array([events[int(name[1:])]]) for name in column.formula.names}
    assert float(column.formula(given, {})[0]) == summed
