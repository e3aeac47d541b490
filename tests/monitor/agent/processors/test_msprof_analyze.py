"""The vendor's own analysis reads our databases. Its exit code is 0 whatever happens, so its tables are looked at."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processor_records import Maker

from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.agent.processors.numbers import Numbers
from npuscope.monitor.agent.processors.sqlite import Database

TOOL = os.environ.get("MSPROF_ANALYZE") or shutil.which("msprof-analyze", path=str(Path(sys.executable).parent))
TIMEOUT_SECONDS = 600
BASE = 1_700_000_000_000_000_000
STEPS, KERNELS = 3, 4
KERNEL_NS, CALL_NS, COLLECTIVE_NS, GAP_NS = (100_000, 120_000), 10_000, 200_000, 50_000
pytestmark = pytest.mark.skipif(TOOL is None, reason="msprof-analyze is not installed")


def write_rank(folder: Path, rank: int) -> None:
    """Three steps of four kernels and a collective; on rank 1 a kernel takes 120 us and not 100. The run is not ended:
    what a process that was killed leaves has to be readable."""
    pid = 4000 + rank
    maker = Maker(rank=rank, pid=pid, started=BASE)
    database = Database(folder, maker.run, numbers=Numbers())
    now, connection = BASE, 0
    for step in range(1, STEPS + 1):
        begin = now
        for number in range(KERNELS):
            connection += 1
            caller = {"process": [pid], "thread": [1], "correlation": [connection]}
            database.add(
                maker.batch(Kind.ACL_API, start=[now], end=[now + CALL_NS], name=["aclnnMatmul"], **caller)
            )
            end = now + KERNEL_NS[rank]
            database.add(maker.kernel(now, end, f"MatMulV2_{number}", device=rank, correlation=connection))
            now = end
        connection += 1
        caller = {"process": [pid], "thread": [1], "correlation": [connection]}
        database.add(maker.batch(Kind.NODE_API, start=[now], end=[now + CALL_NS], name=["HcclAllReduce"], **caller))
        database.add(
            maker.batch(
                Kind.COMMUNICATION, data_type=[4], count=[1 << 20], device=[rank], stream=[3], start=[now],
                end=[now + COLLECTIVE_NS], algorithm=["MESH-RING"], name=["hcom_allReduce_"], comm=["group0"],
                correlation=[connection],
            )
        )  # fmt: skip
        now += COLLECTIVE_NS
        start, stop, number = Flag.START_WITH_DEVICE, Flag.END_WITH_DEVICE, 100 + step
        database.add(
            maker.marks(
                (start, Side.HOST, begin, number, f"step {step}", "step"), (start, Side.DEVICE, begin + 5, number, "", ""),
                (stop, Side.HOST, now, number, "", ""), (stop, Side.DEVICE, now + 7, number, "", ""),
            )
        )  # fmt: skip
        database.report(now)
        now += GAP_NS


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    for rank in range(2):
        write_rank(folder, rank)
    return folder


def run(*words: object) -> str:
    assert TOOL
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [TOOL, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment
    )
    assert "[ERROR]" not in done.stdout + done.stderr
    return done.stdout


def analysed(mode: str, data: Path, out: Path, query: str, *words: str) -> list[tuple[Any, ...]]:
    run("cluster", "-m", mode, "-d", data, "-o", out, "--export_type", "db", *words)
    (path,) = out.rglob("cluster_analysis.db")
    with sqlite3.connect(path) as database:
        found = database.execute(query).fetchall()
    database.close()
    return found


def test_kernels(data: Path, tmp_path: Path) -> None:
    query = "SELECT Rank, TaskType, Count, SumNs FROM ComputeOpPerRankStatsByOpType ORDER BY Rank"
    assert analysed("compute_op_sum", data, tmp_path, query) == [
        (rank, "KERNEL_AICORE", STEPS * KERNELS, STEPS * KERNELS * KERNEL_NS[rank]) for rank in range(2)
    ]


def test_kernels_of_one_step(data: Path, tmp_path: Path) -> None:
    """It finds steps in STEP_TIME only, which the vendor's plug-in does not write."""
    query = "SELECT Rank, Count, SumNs FROM ComputeOpPerRankStatsByOpType ORDER BY Rank"
    assert analysed("compute_op_sum", data, tmp_path, query, "--step_id", "2") == [
        (rank, KERNELS, KERNELS * KERNEL_NS[rank]) for rank in range(2)
    ]


def test_collectives(data: Path, tmp_path: Path) -> None:
    query = "SELECT Rank, OpType, Count, SumNs FROM HcclPerRankStats ORDER BY Rank"
    assert analysed("hccl_sum", data, tmp_path, query) == [
        (rank, "hcom_allReduce_", STEPS, STEPS * COLLECTIVE_NS) for rank in range(2)
    ]


def test_calls(data: Path, tmp_path: Path) -> None:
    query = "SELECT rank, name, totalCount, totalTimeNs FROM CannApiSumRank ORDER BY rank, name"
    expected = [("HcclAllReduce", STEPS), ("aclnnMatmul", STEPS * KERNELS)]
    assert analysed("cann_api_sum", data, tmp_path, query) == [
        (rank, name, count, count * CALL_NS) for rank in range(2) for name, count in expected
    ]


def test_ranges(data: Path, tmp_path: Path) -> None:
    query = "SELECT Rank, StepId, Name, CannDurationNs, DeviceDurationNs FROM MSTXMarkStats ORDER BY Rank, StepId"
    took = [KERNELS * kernel + COLLECTIVE_NS for kernel in KERNEL_NS]
    assert analysed("mstx_sum", data, tmp_path, query) == [
        (rank, step, f"step {step}", took[rank], took[rank] + 2) for rank in range(2) for step in range(1, STEPS + 1)
    ]


def test_comparison(data: Path, tmp_path: Path) -> None:
    base, other = sorted(data.iterdir(), key=lambda path: path.stem[-1])
    text = run("compare", "-d", other, "-bp", base, "-o", tmp_path)
    lines = [line for line in text.splitlines() if line.startswith("| NPU")]
    assert len(lines) == 2 and all(f"({STEPS * KERNELS})" in line for line in lines)
    assert len(list(tmp_path.glob("*.xlsx"))) == 1
