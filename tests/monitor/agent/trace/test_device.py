"""What becomes of a device's kernels: a trace as PyTorch writes it on a host with one, made by hand."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import perfetto
import pytest
from agent.trace.bench import output, table

from npuscope.monitor.agent.trace.parsing.deliver import deliver

BASE = 1_700_000_000_000_000_000
"""Nanoseconds of the wall clock at which the file's times begin."""
HOST = 100
STREAM, TALK = 7, 20


def events(rank: int) -> list[dict[str, Any]]:
    """Three steps of 300 us: two matrix products that are launched by operators, and a collective beside the second."""
    found: list[dict[str, Any]] = []
    for step in range(3):
        start = 1000.0 + 300 * step
        found.append(slice_("user_annotation", f"ProfilerStep#{step}", HOST, HOST, start, 300, {}))
        launches = (
            (start + 10, start + 40, 80.0, "MatMulV2", STREAM, {}),
            (start + 100, start + 130, 60.0 + 10 * rank, "MatMulV2", STREAM, {}),
            (start + 115, start + 150, 100.0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", TALK,
             {"Collective name": "allreduce", "In msg nelems": 256, "dtype": "Float", "Process Group Name": "0"}),
        )  # fmt: skip
        for number, (call, begin, length, name, stream, more) in enumerate(launches):
            correlation = 10 * step + number + 1
            ids = {"External id": correlation, "correlation": correlation}
            if stream == STREAM:
                found.append(slice_("cpu_op", "aten::mm", HOST, HOST, call - 2, 8, {"External id": correlation}))
            found.append(slice_("cuda_runtime", "cudaLaunchKernel", HOST, HOST, call, 3, ids))
            found.append(slice_("kernel", name, 0, stream, begin, length, ids | {"device": 0, "stream": stream} | more))
    return found


def slice_(category: str, name: str, process: int, thread: int, start: float, length: float, args: Any) -> Any:
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": length,
            "args": args}  # fmt: skip


def made(folder: Path, rank: int) -> Path:
    """A folder of raw data."""
    trace = folder / f"host_{HOST + rank}_20260101000000000_ascend_pt"
    (trace / "FRAMEWORK").mkdir(parents=True)
    text = json.dumps({"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": BASE, "traceEvents": []})
    body = ",".join(json.dumps(event, indent=2) for event in events(rank))
    (trace / "FRAMEWORK" / "torch_trace.json").write_text(text.replace("[]}", f"[{body}]}}"))
    about = {"rank": rank, "world_size": 2, "backend": "nccl", "pid": HOST, "start_ns": BASE, "end_ns": BASE + 10**6}
    (trace / "profiler_metadata.json").write_text(json.dumps(about))
    return trace


@pytest.fixture(params=[0, 1])
def parsed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[int, Path]:
    """A rank and its trace with everything delivered as text."""
    trace = made(tmp_path, request.param)
    deliver(trace, "text")
    return request.param, trace


def test_steps_on_the_device(parsed: tuple[int, Path]) -> None:
    rank, trace = parsed
    rows = table(trace, "step_trace_time.csv")
    # By hand: products run at 40..120 and 130..190 (200 on rank 1), the collective at 150..250.
    second = 60 + 10 * rank
    overlapped = second - 20
    expected = {
        "Computing": 80 + second, "Communication": 100, "Overlapped": overlapped,
        "Communication(Not Overlapped)": 100 - overlapped, "Free": 300 - 80 - second - (100 - overlapped),
        "Stage": 300, "Bubble": 0, "Preparing": 40,
    }  # fmt: skip
    assert [(row["Device_id"], row["Step"]) for row in rows] == [("0", "0"), ("0", "1"), ("0", "2")]
    for row in rows:
        assert {name: float(row[name]) for name in expected} == expected


def test_kernels_operators_and_calls(parsed: tuple[int, Path]) -> None:
    rank, trace = parsed
    kernels = table(trace, "kernel_details.csv")
    assert len(kernels) == 9 and kernels[0] == {
        "Step Id": "0", "Device_id": "0", "Stream ID": "7", "Name": "MatMulV2", "Type": "kernel",
        "Accelerator Core": "GPU", "Start Time(us)": "1700000000001040.000", "Duration(us)": "80.0",
        "Wait Time(us)": "0.0",
    }  # fmt: skip
    assert [row["Wait Time(us)"] for row in kernels if row["Name"] == "MatMulV2"][1] == "10.0"
    operators = table(trace, "operator_details.csv")
    assert [float(row["Device Total Duration(us)"]) for row in operators[:2]] == [80.0, 60.0 + 10 * rank]
    assert [float(row["Host Self Duration(us)"]) for row in operators[:2]] == [5.0, 5.0]  # but for the launch
    statistic = {row["OP Type"]: row for row in table(trace, "op_statistic.csv")}
    assert statistic["MatMulV2"]["Count"] == "6"
    assert float(statistic["MatMulV2"]["Total Time(us)"]) == 3 * (140 + 10 * rank)
    (call,) = table(trace, "api_statistic.csv")
    assert (call["API Name"], call["Count"], call["Time(us)"], call["Variance"]) == (
        "cudaLaunchKernel",
        "9",
        "27.0",
        "0.0",
    )
    collective = table(trace, "communication.csv")[0]
    assert (collective["Name"], collective["Group"], collective["Size(B)"]) == ("allreduce", "0", str(256 * 4))


def test_the_database_joins_as_its_readers_do(parsed: tuple[int, Path]) -> None:
    rank, trace = parsed
    deliver(trace, "db")
    with closing(sqlite3.connect(output(trace, f"ascend_pytorch_profiler_{rank}.db"))) as found:
        kernels = found.execute(
            "select s.value, count(*), sum(t.endNs - t.startNs) from COMPUTE_TASK_INFO c join TASK t on "
            "t.globalTaskId = c.globalTaskId join STRING_IDS s on s.id = c.name group by s.value"
        ).fetchall()
        assert kernels == [("MatMulV2", 6, 3 * (140 + 10 * rank) * 1000)]
        calls = "select count(*) from CANN_API a join COMMUNICATION_OP c on c.connectionId = a.connectionId"
        assert found.execute(calls).fetchone() == (3,)
        launched = found.execute(
            "select s.value from TASK t join CONNECTION_IDS c on c.connectionId = t.connectionId join PYTORCH_API a on "
            "a.connectionId = c.id join STRING_IDS s on s.id = a.name"
        ).fetchall()
        assert launched == [("aten::mm",)] * 6
        transfer = "select count, dataType, deviceId, endNs - startNs from COMMUNICATION_OP"
        assert set(found.execute(transfer)) == {(256, 4, 0, 100_000)}
        assert found.execute("select * from RANK_DEVICE_MAP").fetchall() == [(rank, 0)]


def test_perfetto_finds_every_slice(parsed: tuple[int, Path]) -> None:
    assert perfetto.slices(output(parsed[1], "trace_view.json")) == len(events(0))


def test_raw_data_that_is_cut_short_is_parsed_as_far_as_it_goes(tmp_path: Path) -> None:
    trace = made(tmp_path, 0)
    raw = trace / "FRAMEWORK" / "torch_trace.json"
    text = raw.read_text().replace('"MatMulV2"', '"MatMul\udcff"', 1)
    raw.write_bytes(text.encode(errors="surrogateescape"))
    deliver(trace, "text")
    assert "partial" in (trace / "logs" / "parser.log").read_text() or len(table(trace, "kernel_details.csv")) == 9
    raw.write_text("{}")
    with pytest.raises(ValueError, match="holds no events"):
        deliver(trace, "text")
    assert "not parsed" in (trace / "logs" / "parser.log").read_text()
    assert output(trace).exists()  # what there was before stays


HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
found = TraceAnalysis(trace_dir=sys.argv[1])
found.get_temporal_breakdown(visualize=False)
found.get_idle_time_breakdown(ranks=[0], visualize=False)
found.get_gpu_kernel_breakdown(visualize=False)
found.get_comm_comp_overlap(visualize=False)
found.get_cuda_kernel_launch_stats(visualize=False)
found.get_queue_length_summary()
found.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
print(sorted(found.t.traces))
"""


def test_every_analysis_of_hta_accepts_the_traces(tmp_path: Path) -> None:
    pytest.importorskip("hta")
    (tmp_path / "views").mkdir()
    for rank in (0, 1):
        trace = made(tmp_path, rank)
        deliver(trace, "text")
        os.link(output(trace, "trace_view.json"), tmp_path / "views" / f"rank{rank}.json")
    words = [sys.executable, "-W", "ignore", "-c", HTA, str(tmp_path / "views")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[0, 1]"
