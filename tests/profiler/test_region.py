"""The marked part of a launch (KernelScale)."""

from __future__ import annotations

import numpy as np
from made_timeline import Maker

from npuscope.npu.chip import load_chip
from npuscope.profiler.counters import count
from npuscope.profiler.metrics import metric_tables
from npuscope.profiler.region import marked_part
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane


def marked() -> Maker:
    """One core, marked from 100 to 200 and from 400 to 450."""
    maker = Maker(blocks=2)
    maker.slice("METRICS_PROF_START", Lane.SCALAR, 99, 100)
    maker.move("MOV", Lane.MTE2, 50, 150, Space.GM, Space.UB, 1024)  # begins before the mark
    maker.move("MOV", Lane.MTE2, 160, 250, Space.GM, Space.UB, 2048)  # ends after it
    maker.slice("METRICS_PROF_STOP", Lane.SCALAR, 200, 201)
    maker.slice("VADD", Lane.VECTOR, 300, 350, dtype="float32", work=64)  # between two marked parts
    maker.slice("METRICS_PROF_START", Lane.SCALAR, 399, 400)
    wait = maker.slice("WAIT_FLAG", Lane.VECTOR, 350, 420)
    maker.slice("VADD", Lane.VECTOR, 420, 440, dtype="float32", work=640)
    flag = maker.slice("SET_FLAG", Lane.MTE2, 410, 411)
    maker.edge(flag, wait, 0)
    maker.unit(7, 5120, 2560)
    maker.unit(4, 512, 256)
    maker.slice("METRICS_PROF_STOP", Lane.SCALAR, 450, 451)
    maker.slice("VADD", Lane.VECTOR, 100, 900, core=1, dtype="float32", work=64)
    return maker


def test_counts_are_those_of_the_marked_time() -> None:
    part = marked_part(marked().timeline())
    assert part is not None
    found = count(part, load_chip("910B4"))
    assert found.total_cycles.tolist() == [150, 0]
    assert found[12].tolist() == [40 + 1, 0]  # of the second copy, 160 to 200, and the flag
    assert found[8].tolist() == [20, 0]
    assert found[75].tolist() == [10, 0]
    assert found[62].tolist() == [16, 0]
    assert found[67].tolist() == [20, 0]
    assert part.cycles == 150


def test_times_are_moved_together_and_rows_renumbered() -> None:
    part = marked_part(marked().timeline())
    assert part is not None
    texts = [part.steps[step].text for step in part.slice("step")]
    assert texts == ["MOV", "METRICS_PROF_START", "VADD", "SET_FLAG"] or texts == ["MOV", "VADD", "SET_FLAG"]
    add = texts.index("VADD")
    assert (part.slice("start")[add], part.slice("end")[add]) == (120, 140)
    assert part.transfer("slice").tolist() == [texts.index("MOV")]
    assert part.unit("slice").tolist() == [add]
    assert part.edges.shape[1] == 0  # the wait began outside
    assert part.details[add] == ""
    assert len(part.details) == part.slices.shape[1]


def test_ratios_are_against_the_marked_time_even_in_a_mixed_kernel() -> None:
    maker = Maker("mix")
    maker.slice("METRICS_PROF_START", Lane.SCALAR, 99, 100, core=1)
    maker.slice("VADD", Lane.VECTOR, 100, 150, core=1, dtype="float32", work=64)
    maker.slice("METRICS_PROF_STOP", Lane.SCALAR, 200, 201, core=1)
    timeline, chip = maker.timeline(cycles=5000), load_chip("910B4")
    part = marked_part(timeline)
    assert part is not None
    table = metric_tables(timeline, chip, count(part, chip), region=True)["PipeUtilization"]
    assert table.column("aiv_vec_ratio") == [None, 0.5, None]  # the others marked nothing
    whole = metric_tables(timeline, chip, count(timeline, chip))["PipeUtilization"]
    assert whole.column("aiv_vec_ratio") == [None, 0.01, 0.0]


def test_a_mark_without_a_stop_lasts_to_the_end_of_its_core() -> None:
    maker = Maker()
    maker.slice("METRICS_PROF_STOP", Lane.SCALAR, 10, 11)  # stops nothing
    maker.slice("METRICS_PROF_START", Lane.SCALAR, 99, 100)
    maker.slice("METRICS_PROF_START", Lane.SCALAR, 120, 121)  # marked already
    maker.slice("VADD", Lane.VECTOR, 150, 180, dtype="float32", work=64)
    part = marked_part(maker.timeline())
    assert part is not None
    assert count(part, load_chip("910B4")).total_cycles.tolist() == [80]


def test_no_marks() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 150, 180)
    assert marked_part(maker.timeline()) is None
    assert marked_part(Maker().timeline()) is None


def test_figures_that_cannot_be_cut_are_not_known() -> None:
    maker = marked()
    maker.core(0, icache_misses=3, scalar_busy=77)
    part = marked_part(maker.timeline())
    assert part is not None
    found = count(part, load_chip("910B4"))
    assert np.isnan(found[85]).all()
    assert found[9].tolist()[1] == 0
