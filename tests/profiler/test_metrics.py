"""Metric tables of kernels (opprof.md 7, T01 to T07) and of timelines made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_timeline import Maker

from npuscope.cli.session import run_in_session
from npuscope.npu.chip import Chip, load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.counters import count
from npuscope.profiler.critical_path import critical_path, lane_shares
from npuscope.profiler.metrics import metric_tables
from npuscope.profiler.table import Table
from npuscope.trace.recorder import Batch
from npuscope.trace.rows import LaunchRows, launches
from npuscope.trace.schema import Space
from npuscope.trace.timeline import EdgeKind, Lane

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pyasc"
SEVEN = [
    "ArithmeticUtilization",
    "L2Cache",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "PipeUtilization",
    "ResourceConflictRatio",
]


@pytest.fixture(scope="module")
def traces() -> dict[str, LaunchRows]:
    """The launch of three examples: a vector kernel on 8 blocks, a cube kernel, a mixed one on 2 blocks."""
    found = {}
    for name in ("add_queues", "matmul_cube", "matmul_leaky_relu"):
        batches: list[Batch] = []
        assert run_in_session([batches.append], None, str(EXAMPLES / f"{name}.py"), (), False)[0] == 0
        (found[name],) = launches(batches)
    return found


def tables(rows: LaunchRows, chip: Chip, **options) -> dict[str, Table]:
    """The tables of a launch, timed on a chip."""
    timeline = time_launch(rows, chip)
    return metric_tables(timeline, chip, count(timeline, chip), **options)


def test_t01_vector_kernel(traces: dict[str, LaunchRows]) -> None:
    found = tables(traces["add_queues"], load_chip("910B4"), process=12345)
    assert list(found) == ["OpBasicInfo", *SEVEN]
    info = dict(zip(found["OpBasicInfo"].columns, found["OpBasicInfo"].rows[0], strict=True))
    assert list(info) == [
        "Op Name",
        "Op Type",
        "Task Duration(us)",
        "Block Dim",
        "Mix Block Dim",
        "Device Id",
        "Pid",
        "Current Freq",
        "Rated Freq",
    ]
    assert (info["Op Name"], info["Op Type"], info["Block Dim"], info["Mix Block Dim"]) == (
        "add_kernel",
        "vector",
        8,
        0,
    )
    assert (info["Device Id"], info["Pid"], info["Current Freq"], info["Rated Freq"]) == (0, 12345, 1650, 1650)
    for name in SEVEN:
        table = found[name]
        assert table.columns[:2] == ("block_id", "sub_block_id")
        assert table.column("block_id") == list(range(8)) and set(table.column("sub_block_id")) == {"vector0"}
        for column in table.columns:
            if column.startswith("aic_"):
                assert set(table.column(column)) == {None}, column
    # 32768 float sums on 8 blocks in 4 tiles each: 4096 elements a block.
    assert found["ArithmeticUtilization"].column("aiv_vec_fops") == [4096] * 8
    assert found["ArithmeticUtilization"].column("aiv_vec_fp32_ratio") == found["ArithmeticUtilization"].column(
        "aiv_vec_ratio"
    )
    assert found["Memory"].column("GM_to_UB_datas(KB)") == [32.0] * 8
    assert found["Memory"].column("UB_to_GM_datas(KB)") == [16.0] * 8
    assert found["Memory"].column("aiv_mte2_instructions") == [8] * 8
    assert found["Memory"].column("aiv_mte3_instructions") == [4] * 8
    read, written = (
        found["MemoryUB"].column("aiv_ub_read_bw_vector(GB/s)"),
        found["MemoryUB"].column("aiv_ub_write_bw_vector(GB/s)"),
    )
    assert read == pytest.approx([2 * value for value in written]) and min(written) > 0
    pipes = found["PipeUtilization"]
    columns = (pipes.column(name) for name in ("aiv_mte2_time(us)", "aiv_mte2_ratio", "aiv_time(us)"))
    for time, ratio, whole in zip(*columns, strict=True):
        assert 0 < ratio <= 1
        assert time == pytest.approx(ratio * whole)


def test_t02_cube_kernel(traces: dict[str, LaunchRows]) -> None:
    found = tables(traces["matmul_cube"], load_chip("910B4"))
    assert found["OpBasicInfo"].column("Op Type") == ["cube"]
    for name in SEVEN:
        assert found[name].column("sub_block_id") == ["cube0"]
        for column in found[name].columns:
            if column.startswith("aiv_"):
                assert found[name].column(column) == [None], column
    arithmetic, memory = found["ArithmeticUtilization"], found["MemoryL0"]
    assert arithmetic.column("aic_cube_fops") == [2 * 64 * 48 * 96]
    assert arithmetic.column("aic_cube_total_instr_number") == [1]
    assert arithmetic.column("aic_cube_fp16_ratio") == arithmetic.column("aic_cube_ratio")
    assert arithmetic.column("aic_cube_int8_ratio") == [0.0]
    time = memory.column("aic_time(us)")[0]
    # 64 x 48 float results are 12 fractals of 1024 bytes; A 64 x 96 and B 96 x 48 of half go through L1 into L0.
    assert memory.column("aic_l0c_write_bw_cube(GB/s)")[0] == pytest.approx(12 * 1024 / 2**30 / (time / 1e6))
    assert memory.column("aic_l0a_write_bw(GB/s)")[0] == pytest.approx(64 * 96 * 2 / 2**30 / (time / 1e6))
    assert memory.column("aic_l0b_write_bw(GB/s)")[0] == pytest.approx(96 * 48 * 2 / 2**30 / (time / 1e6))
    assert memory.column("aic_l0a_read_bw(GB/s)")[0] == pytest.approx(72 * 512 / 2**30 / (time / 1e6))
    assert found["Memory"].column("GM_to_L1_datas(KB)") == [(64 * 96 + 96 * 48) * 2 / 1024]


def test_t03_mixed_kernel(traces: dict[str, LaunchRows]) -> None:
    found = tables(traces["matmul_leaky_relu"], load_chip("910B4"))
    info = dict(zip(found["OpBasicInfo"].columns, found["OpBasicInfo"].rows[0], strict=True))
    assert (info["Op Type"], info["Block Dim"], info["Mix Block Dim"]) == ("mix", 2, 4)
    table = found["PipeUtilization"]
    ids = list(zip(table.column("block_id"), table.column("sub_block_id"), strict=True))
    assert ids == [(block, name) for block in (0, 1) for name in ("cube0", "vector0", "vector1")]
    # Ratios are against the whole task, times are the core's own.
    for row in range(6):
        core = "aic" if row % 3 == 0 else "aiv"
        ratio, time = table.column(f"{core}_mte2_ratio")[row], table.column(f"{core}_mte2_time(us)")[row]
        assert time == pytest.approx(ratio * info["Task Duration(us)"])
        assert table.column(f"{core}_time(us)")[row] < info["Task Duration(us)"]
    # 256 x 128 x 256 halves on two cubes, in base blocks of whole fractals; A and B are loaded once for each.
    cubes = [0, 3]
    assert [found["ArithmeticUtilization"].column("aic_cube_fops")[row] for row in cubes] == 2 * [256 * 128 * 256]
    zero = found["MemoryL0"]
    for row in cubes:
        a, b, c, cube_reads = (
            zero.column(f"aic_{name}_bw{which}(GB/s)")[row]
            for name, which in (("l0a_write", ""), ("l0b_write", ""), ("l0c_write", "_cube"), ("l0c_read", "_cube"))
        )
        assert a > 0 and b > 0 and c > 0 and cube_reads == 0


def test_the_time_of_a_mixed_kernel_goes_to_messages(traces: dict[str, LaunchRows]) -> None:
    """Each tile goes to the cube core and back, through GM: 1 us each way, 4 tiles for each of two clients."""
    timeline = time_launch(traces["matmul_leaky_relu"], load_chip("910B1"))
    shares = lane_shares(timeline, critical_path(timeline))
    assert next(iter(shares)) == "signal" and shares["issue"] < shares["signal"] / 1.5
    messages, rest = divmod(shares["signal"], 1850)  # cycles of 1 us
    assert rest == 0 and messages in (2 * 8 - 1, 2 * 8)  # the first one may lie behind the start of the cores
    posts = [step.text for step in timeline.steps].index("KFC_POST")
    source = timeline.edge("source")[timeline.edge("kind") == EdgeKind.CROSS]
    assert (timeline.slice("step")[source] == posts).any()


def test_t04_vector_kernel_on_310p(traces: dict[str, LaunchRows]) -> None:
    chip = load_chip("310P3")
    found = tables(traces["add_queues"], chip)
    assert found["OpBasicInfo"].columns == (
        "Op Name", "Op Type", "Task Duration(us)", "Block Dim", "Device Id", "Pid", "Current Freq", "Rated Freq",
    )  # fmt: skip
    assert found["OpBasicInfo"].column("Op Type") == ["AiCore"]
    for name in SEVEN:
        assert len(found[name].rows) == 1
        assert all(column.startswith("aic_") for column in found[name].columns)
    arithmetic = found["ArithmeticUtilization"]
    assert arithmetic.column("aic_vec_fops") == [32768]
    # 8 blocks on 8 cores: the time of one is the mean.
    assert arithmetic.column("aic_time(us)")[0] == pytest.approx(arithmetic.column("aic_total_cycles")[0] / 8 / 1060)


def test_t05_mixed_kernel_on_a5(traces: dict[str, LaunchRows]) -> None:
    found = tables(traces["matmul_leaky_relu"], load_chip("950PR"))
    assert "aic_cube_fp_ratio" in found["ArithmeticUtilization"].columns
    assert "aiv_vec_stu_cflt_ratio" in found["ResourceConflictRatio"].columns
    assert found["L2Cache"].columns[2:10] == (
        "aic_time(us)", "aic_total_cycles", "aic_read_close_hit", "aic_read_close_miss", "aic_read_close_victim", "aic_read_far_hit",
        "aic_read_far_miss", "aic_read_far_victim",
    )  # fmt: skip
    assert len(found["L2Cache"].rows) == 6


def test_memory_detail_adds_two_columns() -> None:
    # T11, at the level of tables.
    maker = Maker("mix")
    maker.move("MOV", Lane.MTE2, 0, 500, Space.GM, Space.L1, 4096)
    maker.move("MOV", Lane.MTE2, 500, 600, Space.GM, Space.L0A, 1024)
    maker.move("LOAD", Lane.MTE1, 0, 100, Space.L1, Space.L0A, 2048)
    timeline, chip = maker.timeline(cycles=2000), load_chip("910B4")
    plain = metric_tables(timeline, chip, count(timeline, chip))["PipeUtilization"]
    assert "aic_mte1_active_bw(GB/s)" not in plain.columns and "aic_mte2_active_bw(GB/s)" not in plain.columns
    table = metric_tables(timeline, chip, count(timeline, chip), detail=True)["PipeUtilization"]
    assert table.column("aic_mte1_active_bw(GB/s)")[0] == pytest.approx(2048 / 2**30 / (100 / 1650e6))
    assert table.column("aic_mte2_active_bw(GB/s)")[0] == pytest.approx(5120 / 2**30 / (600 / 1650e6))
    assert table.column("aic_mte2_active_bw(GB/s)")[1:] == [None, None]


def test_more_blocks_than_cores_on_310p() -> None:
    maker = Maker(blocks=12)
    for core in range(12):
        maker.core(core, start=0, end=1060)
    timeline, chip = maker.timeline(mhz=1060), load_chip("310P3")
    table = metric_tables(timeline, chip, count(timeline, chip))["PipeUtilization"]
    assert table.column("aic_time(us)") == [2.0]  # two rounds on 8 cores


def test_memory_of_another_vendor_has_other_peaks() -> None:
    maker = Maker()
    maker.move("MOV", Lane.MTE2, 0, 500, Space.GM, Space.UB, 4096)
    timeline, chip = maker.timeline(), load_chip("910B4")
    counters = count(timeline, chip)
    usage = [
        metric_tables(timeline, chip, counters, memory=memory)["Memory"].column("GM_to_UB_bw_usage_rate(%)")[0]
        for memory in (None, "CJ")
    ]
    assert usage[0] / usage[1] == pytest.approx(195.52 / 195.27)
