"""The memory graph. Expected rates are those of the sample rows of opprof.md 2.4: 910B4, 1650 MHz, 8400 cycles, 8 KB
in and 4 KB out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from npuscope.npu.chip import load_chip
from npuscope.profiler.charts.heat_map import MemoryPath, heat_map
from npuscope.profiler.counters import Counters
from npuscope.trace.timeline import Timeline

Make, Count = Callable[..., Timeline], Callable[..., Counters]
P = MemoryPath
SAMPLE = {62: 64, 61: 32, 67: 64, 68: 32, 8: 3258, 1280: 30, 1282: 14, 1283: 0, 1284: 40, 1286: 10, 1287: 0, 1288: 38,
          1290: 9, 1291: 0, 156: 3}  # fmt: skip


def test_the_sample_rows(make: Make, counters: Count) -> None:
    timeline = make()
    chart = heat_map(timeline, load_chip("910B4"), counters(timeline, "A2", SAMPLE))
    (block,) = chart.blocks
    assert (chart.family, block.kind, block.block) == ("910B", "vector", 0)
    into, out = block.flow(P.L2_TO_UB), block.flow(P.UB_TO_L2)
    assert into is not None and out is not None
    assert (into.requests, into.bytes, out.bytes) == (64, 8192, 4096)
    assert into.bandwidth == pytest.approx(1.498631, abs=5e-7)
    assert into.share == pytest.approx(0.767466, abs=5e-7)
    assert out.bandwidth == pytest.approx(0.749316, abs=5e-7)
    assert out.share == pytest.approx(0.423941, abs=5e-7)
    reads = block.flow(P.UB_TO_VEC)
    assert reads is not None and reads.bandwidth == pytest.approx(2.997262, abs=5e-7)
    assert reads.share == pytest.approx(100 * 2.997262 / (512 * 1650e6 / 2**30), rel=1e-6)
    assert block.l2 is not None
    assert (block.l2.hits, block.l2.misses, block.l2.requests) == (108, 33, 141)
    assert block.l2.rate == pytest.approx(76.595745, abs=5e-7)
    (unit,) = block.units
    assert (unit.name, unit.cycles, unit.total_cycles) == ("Vector", 3258, 8400)
    assert unit.ratio == pytest.approx(38.785714, abs=5e-7)


def test_main_memory_is_what_the_cache_missed_and_put_out(make: Make, counters: Count) -> None:
    timeline = make()
    (block,) = heat_map(timeline, load_chip("910B4"), counters(timeline, "A2", SAMPLE)).blocks
    read, written = block.flow(P.GM_TO_L2), block.flow(P.L2_TO_GM)
    assert read is not None and written is not None
    assert (read.requests, read.bytes) == (19, 19 * 128)
    assert (written.requests, written.bytes) == (3, 3 * 512)
    assert read.share == pytest.approx(100 * (19 * 128 / 2**30 / (8400 / 1650e6)) / 800)  # 910B4 has 800 GB/s


def test_blocks_share_main_memory_as_far_as_they_run_at_once(make: Make, counters: Count) -> None:
    few, many = make(blocks=2), make(blocks=100)  # 910B4 has 40 vector cores
    shares = []
    for timeline in (few, many):
        flow = heat_map(timeline, load_chip("910B4"), counters(timeline, "A2", SAMPLE)).blocks[0].flow(P.GM_TO_L2)
        assert flow is not None and flow.share is not None
        shares.append(flow.share)
    assert shares[1] / shares[0] == pytest.approx(40 / 2)


def test_no_more_lines_are_put_out_than_writes_missed(make: Make, counters: Count) -> None:
    timeline = make()
    (block,) = heat_map(timeline, load_chip("910B4"), counters(timeline, "A2", {156: 50, 1282: 14})).blocks
    written = block.flow(P.L2_TO_GM)
    assert written is not None and written.requests == 14


def test_what_is_not_counted_is_not_zero(make: Make, counters: Count) -> None:
    timeline = make()
    (block,) = heat_map(timeline, load_chip("910B4"), counters(timeline, "A2", {62: 64})).blocks
    flow = block.flow(P.UB_TO_L2)
    assert flow is not None
    assert (flow.requests, flow.bytes, flow.bandwidth, flow.share) == (None, None, None, None)
    assert block.l2 is None
    assert block.units[0].cycles is None


def test_a_mixed_block_has_both_vector_cores(make: Make, counters: Count) -> None:
    timeline = make(kind="mix", blocks=2, cycles=1650)
    values = {62: ("aiv", 64), 50: ("aic", 20), 518: ("aic", 4), 28: ("aic", 9), 10: ("aic", 800), 8: ("aiv", 400)}
    paths = {"GM_L0A": ("aic", 2 * 256)}
    chart = heat_map(timeline, load_chip("910B4"), counters(timeline, "A2", values, paths))
    assert [block.block for block in chart.blocks] == [0, 1]
    block = chart.blocks[1]
    assert [unit.name for unit in block.units] == ["Cube", "Vector", "Vector1"]
    first, other, cube = block.flow(P.L2_TO_UB), block.flow(P.L2_TO_UB_2), block.flow(P.L2_TO_L1)
    assert first is not None and other is not None and cube is not None
    assert first.bytes == other.bytes == 8192
    assert (cube.requests, cube.bytes) == (16, 4096)
    assert cube.bandwidth == pytest.approx(4096 / 2**30 / 1e-6)
    from_gm, from_l1 = block.flow(P.GM_TO_L0A_AIC), block.flow(P.L1_TO_L0A_AIC)
    assert from_gm is not None and from_l1 is not None
    assert (from_gm.requests, from_l1.requests) == (2, 7)


def test_a5_shows_fixpipe_and_the_cache_of_simt(make: Make, counters: Count) -> None:
    timeline = make("Ascend950PR", "mix", cycles=1650)
    values = {
        1804: ("aic", 8),
        1806: ("aic", 2),
        1815: ("aic", 4),
        1059: 6,
        1407: ("aiv", 3),
        1408: ("aiv", 1),
        1058: 10,
    }
    chart = heat_map(timeline, load_chip("950PR"), counters(timeline, "A5", values, {"UB_GM": ("aiv", 300)}))
    assert chart.family == "910A5"
    (block,) = chart.blocks
    amounts = {flow.path: flow.bytes for flow in block.flows}
    assert amounts[P.L0C_TO_FIXP] == 20 * 128
    assert amounts[P.FIXP_TO_UB] == 8 * 128
    assert amounts[P.FIXP_TO_UB_2] == 4 * 128
    assert amounts[P.L2_TO_DCACHE_2] == 4 * 128
    assert amounts[P.L2_TO_UB] == (10 - 4) * 128
    assert amounts[P.UB_TO_L2] == 300
    assert P.L1_TO_L2 not in amounts  # the way was taken out


def test_310p_has_its_own_picture(make: Make, counters: Count) -> None:
    timeline = make("Ascend310P3", "coupled", blocks=2, cycles=1060)
    values = {62: 100, 50: 10, 106: 30, 120: 20, 121: 20, 18: 5, 10: 100, 8: 200}
    chart = heat_map(timeline, load_chip("310P3"), counters(timeline, "310P", values))
    block = chart.blocks[1]
    assert (chart.family, block.kind) == ("310P", "AiCore")
    amounts = {flow.path: flow.bytes for flow in block.flows}
    assert amounts[P.L2_OR_L1_TO_UB] == 1600
    assert amounts[P.L2_OR_UB_TO_L1] == 2560
    assert amounts[P.GM_TO_L2] == 2560
    assert block.l2 is not None and (block.l2.hits, block.l2.misses) == (30, 10)
    assert [unit.name for unit in block.units] == ["Cube", "Vector"]


def test_names_of_ways() -> None:
    assert P.GM_OR_L1_TO_L0A.ends == ("GM/L1", "L0A")
    assert P.UB_TO_VEC_2.ends == ("UB", "VEC")
    assert P.UB_TO_VEC_2.second and not P.UB_TO_VEC.second
    assert P.GM_TO_L0A_AIC.ends == ("GM", "L0A")
    assert [path.value for path in P] == [*range(26), *range(35, 56)]  # opprof.md 2.8
