"""The formula engine, and the sample rows of opprof.md 2.4."""

from __future__ import annotations

import math

import numpy as np
import pytest

from npuscope.npu.chip import load_chip
from npuscope.profiler.formulas import Column, Rows, evaluate, table_columns
from npuscope.profiler.formulas.formula import Formula
from npuscope.profiler.formulas.functions import MEANING, Basis
from npuscope.profiler.table import Table
from npuscope.profiler.writers.csv import table_text
from npuscope.trace.schema import CoreType

B4 = load_chip("Ascend910B4")
GOLD_CYCLES, GOLD_MHZ = 8400.0, 1650.0


def rows(
    events: dict[int, float], cycles: float = GOLD_CYCLES, core: CoreType | None = CoreType.AIV, chip=B4, mhz: float = GOLD_MHZ,
    paths: dict[str, float] | None = None, task: float | None = None, scale: float = 1.0,
) -> Rows:  # fmt: skip
    """One row."""
    return Rows(
        Basis(np.array([cycles]), mhz, task, scale),
        {event: np.array([float(value)]) for event, value in events.items()},
        {path: np.array([float(value)]) for path, value in (paths or {}).items()},
        chip.peak_rates(),
        None if core is None else np.array([int(core)]),
    )


def line(table: str, given: Rows, columns: str = "A2", detail: bool = False) -> str:
    """The one row of a table as the file has it."""
    found = evaluate(table_columns(columns)[table], given, detail)
    cells = tuple(zip(*[column.cells(values) for column, values in found], strict=True))
    return table_text(Table(table, tuple(column.name for column, _ in found), cells)).splitlines()[1]


def cell(table: str, name: str, given: Rows, columns: str = "A2", detail: bool = False):
    """One cell of the one row."""
    for column, values in evaluate(table_columns(columns)[table], given, detail):
        if column.name == name:
            return column.cells(values)[0]
    raise KeyError(name)


# -- sample rows (opprof.md 2.4) ---------------------------------------------------------------------------------------


def test_gold_arithmetic() -> None:
    # 0.001905 and 0.008092 are shares of vec_ratio 0.076190: 1/40 and 0.106207 of e1; with 4096 operations in all
    # (128 for each fp16 pass, 32 for each other one) e1 must be 4096 / (128/40 + 32 * 0.106207): the sample has no whole
    # counts.
    passes = 4096 / (128 / 40 + 32 * 0.106207)
    events = {8: 640, 1: passes, 75: passes / 40, 76: passes / 40, 77: 0, 174: 0, 78: 0, 186: 0, 79: passes * 0.106207}
    expected = "5.090909,8400,0.076190,0.000000,0.001905,0.000000,0.000000,0.008092,4096"
    assert line("ArithmeticUtilization", rows(events)) == "NA," * 9 + expected


def test_gold_memory() -> None:
    events = {61: 32, 62: 64, 1293: 50, 1294: 47, 1292: 44, 5: 33, 12: 4620, 6: 17, 13: 3864}
    expected = (
        "5.090909,8400,0.749316,1.498631,2.271363,1.030309,33,0.550000,17,0.460000,12.125000,5.500000,"
        "NA,NA,NA,NA,NA,NA,NA,NA,8.000000,0.767466,4.000000,0.423941"
    )
    assert line("Memory", rows(events)) == "NA," * 12 + expected


def test_gold_memory_ub() -> None:
    assert (
        line("MemoryUB", rows({67: 64, 68: 32, 55: 12, 56: 4}))
        == "NA,NA,5.090909,8400,2.997262,1.498631,0.035124,0.011708"
    )


def test_gold_pipe_utilization() -> None:
    events = {8: 640, 12: 4620, 62: 64, 13: 3864, 61: 32, 85: 33, 84: 1000, 9: 1260}
    expected = "5.090909,8400,0.387879,0.076190,2.800000,0.550000,2.724784,2.341818,0.460000,1.628947,0.033000,0.763636,0.150000,"
    assert line("PipeUtilization", rows(events)).startswith("NA," * 25 + expected)


def test_gold_resource_conflicts() -> None:
    events = {100: 120, 101: 40, 102: 8, 103: 0, 89: 3800, 91: 84, 92: 42}
    expected = "5.090909,8400,0.020000,0.014286,0.004762,0.000952,0.000000,0.452381,0.010000,0.005000"
    assert line("ResourceConflictRatio", rows(events)) == "NA," * 6 + expected


def test_gold_l2_cache() -> None:
    events = {1280: 30, 1282: 14, 1283: 0, 1284: 40, 1286: 10, 1287: 0, 1288: 38, 1290: 9, 1291: 0}
    expected = "5.090909,8400,30,14,40,10,38,9,68.181818,80.412371,76.595745"
    assert line("L2Cache", rows(events)) == "NA," * 11 + expected


def test_gold_memory_l0() -> None:
    events = {27: 16384, 28: 8192, 33: 16384, 34: 8192, 40: 4096, 42: 8192}
    expected = "165.249697,272662,47.276940,11.819235,47.276940,5.909617,23.638470,47.276940,NA,NA"
    assert line("MemoryL0", rows(events, 272662, CoreType.AIC)) == expected


def test_hit_rates_of_a5() -> None:
    read, write = (24935, 2596, 1945, 0, 2292, 0), (9650, 0, 142, 512, 0, 0)
    given = rows(dict(zip(range(1060, 1072), read + write, strict=True)), chip=load_chip("950PR"))
    assert cell("L2Cache", "aiv_read_hit_rate(%)", given, "A5") == pytest.approx(
        78.490935, abs=1e-6
    )  # the picture has 32-bit numbers
    assert cell("L2Cache", "aiv_write_hit_rate(%)", given, "A5") == pytest.approx(98.621894, abs=5e-7)
    assert cell("L2Cache", "aic_read_hit_rate(%)", given, "A5") is None


# -- the functions, by hand --------------------------------------------------------------------------------------------


def value(text: str, given: Rows) -> float:
    """A formula's value on the one row."""
    ((_, found),) = evaluate([Column("x", text)], given)
    return float(found[0])


def test_time_ratio_and_amounts() -> None:
    given = rows({12: 825, 50: 10, 518: 4}, cycles=1650)
    assert value("US(e12)", given) == 0.5
    assert value("R(e12)", given) == 0.5
    assert value("KB(e50 - e518, 256)", given) == 1.5
    assert value("BW(e50, 128)", given) == pytest.approx(1280 / 2**30 / 1e-6)
    assert value("ACTIVE(e50, 128, e12)", given) == pytest.approx(1280 / 2**30 / 0.5e-6)


def test_mixed_kernels_are_measured_against_the_task() -> None:
    given = rows({12: 825, 62: 10}, cycles=1650, task=3300)
    assert value("R(e12)", given) == 0.25
    assert value("US(e12)", given) == 0.5
    assert value("BW(e62, 128)", given) == pytest.approx(1280 / 2**30 / 2e-6)
    assert value("ACTIVE(e62, 128, e12)", given) == pytest.approx(1280 / 2**30 / 0.5e-6)


def test_310p_averages_the_cores() -> None:
    # 20 blocks on 8 cores: three rounds, so a core's time is 3/20 of all cycles.
    given = rows({12: 10600, 61: 64}, cycles=21200, core=None, mhz=1060, scale=3 / 20)
    assert value("US(cycles)", given) == 3.0
    assert value("US(e12)", given) == 1.5
    assert value("R(e12)", given) == 0.5
    assert value("BW(e61, 16)", given) == pytest.approx(1024 / 2**30 / 3e-6)


def test_usage_is_held_against_the_peak_of_a_core() -> None:
    full = 195.27 * 2**30 / 128 * GOLD_CYCLES / GOLD_MHZ / 1e6
    assert value("U(BW(e62, 128), gm_to_ub)", rows({62: full / 2})) == pytest.approx(50)
    assert value("U(BW(e62, 128), gm_to_ub)", rows({62: full * 2})) == 100
    assert math.isnan(value("U(BW(e62, 128), gm_to_ub)", rows({62: 1}, chip=load_chip("310P3"))))


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("KB(e1 - e2, 128)", {1: 1, 2: 2}),  # a negative amount
        ("BW(e1 - e2, 128)", {1: 1, 2: 2}),
        ("ACTIVE(e1 - e2, 128, e2)", {1: 1, 2: 2}),
        ("ACTIVE(e1, 128, e2)", {1: 5, 2: 0}),  # no time
        ("ACTIVE(e1, 128, e2)", {1: 0, 2: 0}),
        ("e1 / e2", {1: 0, 2: 0}),
        ("PERCENT(e1, e2)", {1: 0, 2: 0}),
        ("PERCENT(e1, e2)", {1: 3, 2: 2}),  # more hits than requests
        ("R(e1)", {}),  # not counted
        ("R(e1 + e2)", {1: 1, 2: np.nan}),
        ("SHARE(e1, e2)", {1: np.nan, 2: 0}),
    ],
)
def test_what_cannot_be_told_does_not_apply(text: str, events: dict[int, float]) -> None:
    assert math.isnan(value(text, rows(events)))


def test_a_unit_that_did_nothing_has_no_share() -> None:
    assert value("R(SHARE(e8 * e76, e1))", rows({8: 0, 76: 0, 1: 0})) == 0


@pytest.mark.parametrize(
    "text", ["e1 ** 2", "__import__('os')", "e1.real", "[e1]", "f(x=e1)", "e1 if e2 else 3", "(", "e1 and e2", "'a'"]
)
def test_only_arithmetic_is_a_formula(text: str) -> None:
    with pytest.raises(ValueError, match="not a formula"):
        Formula(text)


# -- every family of columns, by hand ------------------------------------------------------------------------------


def test_cube_columns_of_a2() -> None:
    given = rows({10: 500, 73: 300, 74: 100, 3: 7, 1032: 300, 1033: 100}, 1000, CoreType.AIC)
    assert line("ArithmeticUtilization", given) == (
        "0.606061,1000,0.500000,0.375000,0.125000,4096000,7,300,100" + ",NA" * 9
    )  # 300 * 8192 + 100 * 16384


def test_vector_operations_of_a2_and_310p() -> None:
    events = {8: 1, 1: 1, 75: 5, 76: 2, 77: 3, 174: 4, 78: 6, 186: 7, 79: 8}
    assert cell("ArithmeticUtilization", "aiv_vec_fops", rows(events)) == 3 * 64 + 256 + 192 + 128 + 384 + 896 + 256
    a310 = rows(events, core=None)
    assert cell("ArithmeticUtilization", "aic_vec_fops", a310, "310P") == 320 + 256 + 192 + 128 + 96 + 224 + 128


def test_ways_of_data_on_a_cube_core_of_a2() -> None:
    # 8 KB to L1 in requests of 256 and 1 KB from L0C to L1 in requests of 128; 2 KB from L0C and 3 KB from L1 to GM.
    given = rows({50: 32 + 8, 518: 8, 19: (16 + 24) / 4, 524: 8 + 16, 13: 825}, 1650, CoreType.AIC)
    assert cell("Memory", "GM_to_L1_datas(KB)", given) == 8
    assert cell("Memory", "L0C_to_L1_datas(KB)", given) == 1
    assert cell("Memory", "L0C_to_GM_datas(KB)", given) == 2
    assert cell("Memory", "L1_to_GM_datas(KB)(estimate)", given) == 3
    assert cell("Memory", "L1_to_GM_bw_usage_rate(%)(estimate)", given) == pytest.approx(
        3072 / 2**30 / 1e-6 / 189.89 * 100
    )
    assert cell("PipeUtilization", "aic_mte3_active_bw(GB/s)", given) == pytest.approx(3072 / 2**30 / 0.5e-6)


def test_detail_columns_are_there_when_asked_for() -> None:
    given = rows(
        {28: 10, 34: 20, 770: 825, 12: 1650}, 1650, CoreType.AIC, paths={"GM_L0A": 1024, "GM_L0B": 512, "GM_L1": 2048}
    )
    with pytest.raises(KeyError):
        cell("PipeUtilization", "aic_mte1_active_bw(GB/s)", given)
    through_l1 = 10 * 256 - 1024 + 20 * 128 - 512
    assert cell("PipeUtilization", "aic_mte1_active_bw(GB/s)", given, detail=True) == pytest.approx(
        through_l1 / 2**30 / 0.5e-6
    )
    assert cell("PipeUtilization", "aic_mte2_active_bw(GB/s)", given, detail=True) == pytest.approx(3584 / 2**30 / 1e-6)


def test_waits_on_flags_are_there_where_there_are_any() -> None:
    given = rows({1792: 0, 1795: 330, 1780: np.nan, 1787: 165})
    names = [
        column.name for column, _ in evaluate(table_columns("A2")["PipeUtilization"], given) if "wait_id" in column.name
    ]
    assert names == ["aiv_scalar_wait_id3_time(us)", "aiv_scalar_wait_id15_time(us)"]
    assert cell("PipeUtilization", "aiv_scalar_wait_id3_time(us)", given) == pytest.approx(0.2)


def test_columns_of_a5_by_hand() -> None:
    chip = load_chip("950PR")
    cube = rows(
        {810: 330, 1799: 8, 1794: 825, 1804: 1, 1806: 2, 1815: 3, 1059: 4, 1812: 1650}, 1650, CoreType.AIC, chip
    )
    assert cell("PipeUtilization", "aic_cube_ratio", cube, "A5") == 0.2
    assert cell("PipeUtilization", "aic_mte1_active_bw(GB/s)", cube, "A5") == pytest.approx(2048 / 2**30 / 0.5e-6)
    assert cell("PipeUtilization", "aic_fixpipe_active_bw(GB/s)", cube, "A5") == pytest.approx(1280 / 2**30 / 1e-6)
    assert cell("Memory", "L0C_to_L1_bw_usage_rate(%)", cube, "A5") == pytest.approx(256 / 2**30 / 1e-6 / 377.8 * 100)
    vector = rows(
        {1058: 20, 1407: 3, 1408: 1, 1366: 33, 1376: 1, 1377: 2, 1378: 3, 1379: 4},
        1650,
        CoreType.AIV,
        chip,
        paths={"UB_GM": 512},
    )
    assert cell("Memory", "GM_to_UB_datas(KB)", vector, "A5") == 2
    assert cell("Memory", "UB_to_GM_datas(KB)", vector, "A5") == 0.5
    assert cell("Memory", "GM_to_L1_datas(KB)", vector, "A5") is None
    assert cell("MemoryUB", "aiv_ub_write_bw_gm(GB/s)", vector, "A5") == pytest.approx(2048 / 2**30 / 1e-6)
    assert cell("ResourceConflictRatio", "aiv_vec_stu_cflt_ratio", vector, "A5") == 0.02
    assert cell("ResourceConflictRatio", "aiv_vec_sfu_cflt_ratio", vector, "A5") == pytest.approx(10 / 1650)


def test_l2_of_310p() -> None:
    assert cell("L2Cache", "aic_l2_cache_hit_rate(%)", rows({106: 30, 120: 40, 121: 20}, core=None), "310P") == 50
    assert cell("L2Cache", "aic_l2_cache_hit_rate(%)", rows({106: 61, 120: 40, 121: 20}, core=None), "310P") is None


# -- the vendor's names and order ----------------------------------------------------------------------------------


def names(columns: str, table: str) -> list[str]:
    return [column.name for column in table_columns(columns)[table] if not column.sparse]


def test_column_order_of_a2() -> None:
    # opprof.md 2.3, "Column order of PipeUtilization" and "Order on A2".
    def pairs(core: str, *stems: str) -> list[str]:
        return [f"{core}_{stem}" for stem in stems]

    aic = pairs(
        "aic", "time(us)", "total_cycles", "cube_time(us)", "cube_ratio", "mte1_time(us)", "mte1_ratio", "mte2_time(us)", "mte2_ratio",
        "mte3_time(us)", "mte3_ratio", "mte3_active_bw(GB/s)", "fixpipe_time(us)", "fixpipe_ratio", "fixpipe_active_bw(GB/s)",
        "icache_miss_rate", "scalar_time(us)", "scalar_ratio", "scalar_single_time(us)", "scalar_dual_time(us)",
        "scalar_mte1_stall_time(us)", "scalar_mte2_stall_time(us)", "scalar_mte3_stall_time(us)", "scalar_cube_stall_time(us)",
        "scalar_wait_ib_time(us)", "scalar_wait_time(us)",
    )  # fmt: skip
    aiv = pairs(
        "aiv", "time(us)", "total_cycles", "vec_time(us)", "vec_ratio", "mte2_time(us)", "mte2_ratio", "mte2_active_bw(GB/s)",
        "mte3_time(us)", "mte3_ratio", "mte3_active_bw(GB/s)", "icache_miss_rate", "scalar_time(us)", "scalar_ratio",
        "scalar_single_time(us)", "scalar_dual_time(us)", "scalar_mte2_stall_time(us)", "scalar_mte3_stall_time(us)",
        "scalar_stall_by_ub_time(us)", "scalar_vector_stall_time(us)", "scalar_wait_ib_time(us)", "scalar_wait_time(us)",
    )  # fmt: skip
    assert names("A2", "PipeUtilization") == [*aic, *aiv, "aic_mte1_active_bw(GB/s)", "aic_mte2_active_bw(GB/s)"]
    assert " ".join(names("A2", "ArithmeticUtilization")) == (
        "aic_time(us) aic_total_cycles aic_cube_ratio aic_cube_fp16_ratio aic_cube_int8_ratio aic_cube_fops aic_cube_total_instr_number "
        "aic_cube_fp_instr_number aic_cube_int_instr_number aiv_time(us) aiv_total_cycles aiv_vec_ratio aiv_vec_fp32_ratio "
        "aiv_vec_fp16_ratio aiv_vec_int32_ratio aiv_vec_int16_ratio aiv_vec_misc_ratio aiv_vec_fops"
    )
    ways = ["GM_to_L1", "L1_to_GM", "L0C_to_L1", "L0C_to_GM", "GM_to_UB", "UB_to_GM"]
    tail = ["read_main_memory_datas(KB)", "write_main_memory_datas(KB)"]
    for way in ways:
        note = "(estimate)" if way == "L1_to_GM" else ""
        tail += [f"{way}_datas(KB){note}", f"{way}_bw_usage_rate(%){note}"]
    assert names("A2", "Memory")[-14:] == tail


def test_column_order_of_a5_and_310p() -> None:
    assert " ".join(names("A5", "ArithmeticUtilization")) == (
        "aic_time(us) aic_total_cycles aic_cube_ratio aic_cube_fp_ratio aic_cube_int_ratio aic_cube_total_instr_number "
        "aic_cube_fp_instr_number aic_cube_int_instr_number aiv_time(us) aiv_total_cycles aiv_vec_ratio aiv_vec_vf_ratio "
        "aiv_vec_sfu_ratio aiv_vec_simt_vf_ratio"
    )
    assert " ".join(names("310P", "PipeUtilization")) == (
        "aic_time(us) aic_total_cycles aic_cube_time(us) aic_cube_ratio aic_scalar_time(us) aic_scalar_ratio aic_mte1_time(us) "
        "aic_mte1_ratio aic_mte2_time(us) aic_mte2_ratio aic_mte3_time(us) aic_mte3_ratio aic_icache_miss_rate aic_vec_time(us) aic_vec_ratio"
    )
    assert " ".join(names("310P", "Memory")) == (
        "aic_time(us) aic_total_cycles aic_l1_read_bw(GB/s) aic_l1_write_bw(GB/s) aic_ub_to_gm_bw(GB/s) aic_gm_to_ub_bw(GB/s) "
        "aic_main_mem_read_bw(GB/s) aic_main_mem_write_bw(GB/s) aic_mte1_instructions aic_mte1_ratio aic_mte2_instructions aic_mte2_ratio "
        "aic_mte3_instructions aic_mte3_ratio"
    )
    assert "L1_to_GM_datas(KB)(estimate)" not in names("A5", "Memory")


@pytest.mark.parametrize("columns", ["A2", "A5", "310P"])
def test_every_formula_is_understood(columns: str) -> None:
    from npuscope.profiler.counters.counters import EVENTS

    known = {event.number for event in EVENTS[columns]}
    functions = {name.partition("(")[0] for name in MEANING}
    for table, found in table_columns(columns).items():
        for column in found:
            assert set(column.formula.events) <= known, (table, column.name)
            assert column.formula.functions <= functions, (table, column.name)


def test_peaks_by_memory_vendor() -> None:
    # opprof.md 6.3
    assert load_chip("910B1").peak_rates()["gm_to_ub"] == 220.06
    assert load_chip("910B1").peak_rates("CJ")["gm_to_ub"] == 219.14
    assert load_chip("910B3").peak_rates("CJ")["l1_to_l0a"] == 427.45
    assert load_chip("910B4").peak_rates("CJ") | {"gm": 1250.0, "l2": 6300.0, "gm_to_l1": 274.0} == load_chip(
        "910B4"
    ).peak_rates("CJ")
    assert load_chip("950PR").peak_rates()["l2"] == 8800.0
