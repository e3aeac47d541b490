"""The whole way with nothing of a test's own in between: `npuscope monitor run`, ranges of our `mstx` calls, `dyno`, and
what a plain reader finds."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.conftest import Job, serving
from agent.jobs import agents, known, log, monitor, shows, steps
from daemon_process import Daemon
from training import running, wait_until

from npuscope.monitor.protocol import rpc

SCRIPT = """
import os, time
import mstx
import torch

torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end, step = time.time() + 240, 0
while time.time() < end:
    step += 1
    handle = mstx.range_start(f"batch {step}", None)
    model(torch.randn(2, 8)).sum().backward()
    optimizer.step()
    mstx.range_end(handle)
    time.sleep(0.01)
"""
MARKERS = ("--npu-monitor-start", "--mspti-activity-kind", "Marker", "--report-interval-s", "1")


@pytest.fixture(scope="module")
def whole() -> Iterator[Job]:
    """A script run by `npuscope monitor run`."""
    folder = Path(tempfile.mkdtemp(prefix="npuscope-", dir="/tmp"))
    (folder / "train.py").write_text(SCRIPT)
    env = agents(folder, RANK="7")
    del env["NPUSCOPE_AGENT"]
    words = [sys.executable, "-m", "npuscope", "monitor", "run", str(folder / "train.py")]
    with serving(folder) as daemon, running(folder, words, env) as process:
        known(daemon, [process.pid])
        yield Job(daemon, process.pid, folder)
    shutil.rmtree(folder)


def collected(job: Job, folder: Path, *flags: str) -> None:
    monitor(job.daemon, *MARKERS, "--log-file", str(folder), *flags)
    shows(job.daemon, job.pid, monitor="Running")
    steps(job, 20)
    monitor(job.daemon, "--npu-monitor-stop")
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="stopped")


def test_a_database(whole: Job) -> None:
    collected(whole, whole.folder / "db")
    (path,) = (whole.folder / "db").glob("*.db")
    assert path.stat().st_mode & 0o027 == 0
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "select s.value, e.startNs, e.endNs from MSTX_EVENTS e join STRING_IDS s on s.id = e.message"
        ).fetchall()
        assert database.execute("select rankId from RANK_DEVICE_MAP").fetchall() in ([], [(7,)])
    found = [int(name.split()[1]) for name, _, _ in rows if name.startswith("batch ")]
    assert len(found) >= 18 and sorted(found) == list(range(min(found), max(found) + 1))  # none is missing
    assert all(start < end for _, start, end in rows)


def test_json_lines_with_a_filter(whole: Job) -> None:
    folder = whole.folder / "lines"
    collected(whole, folder, "--export-type", "Jsonl", "--filter", "Marker:5,7")
    lines = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    names = [line["name"] for line in lines if line["kind"] == "Marker"]
    assert names and all(set(name) & {"5", "7"} for name in names if name.startswith("batch "))


def records(daemon: Daemon) -> list[dict[str, Any]]:
    found = daemon.ask(rpc.compact({"fn": "getMetrics"}))["records"]
    return [one for one in found if one["labels"].get("kind") == "Marker"]


def test_measurements_reach_the_daemon(whole: Job) -> None:
    monitor(whole.daemon, *MARKERS)
    wait_until(lambda: records(whole.daemon), 90, "no measurement came")
    monitor(whole.daemon, "--npu-monitor-stop")
    shows(whole.daemon, whole.pid, monitor="Idle", monitorEnded="stopped")
    (record, *_) = records(whole.daemon)
    assert record["labels"]["pid"] == str(whole.pid) and record["labels"]["rank"] == "7"
    assert record["values"]["duration"] > 0 and "step" in str(record)


def test_a_trace_and_a_monitor_exclude_each_other(whole: Job) -> None:
    monitor(whole.daemon, *MARKERS, "--log-file", str(whole.folder / "other"))
    shows(whole.daemon, whole.pid, monitor="Running")
    trace = ("nputrace", "--log-file", str(whole.folder / "trace"), "--start-step", "-1", "--iterations", "1000000")
    refused = whole.daemon.dyno(*trace)
    assert refused.returncode == 1 and "a monitor is running" in refused.stderr
    monitor(whole.daemon, "--npu-monitor-stop")
    shows(whole.daemon, whole.pid, monitor="Idle")
    done = whole.daemon.dyno(*trace)
    assert done.returncode == 0, done.stderr
    shows(whole.daemon, whole.pid, trace="Running")
    refused = monitor(whole.daemon, *MARKERS, code=1)
    assert "a trace is running" in refused.stderr
    # The process holds to it too, whatever a daemon lets through.
    assert "Traceback" not in log(whole.folder, whole.pid) and "ERR00005" not in log(whole.folder, whole.pid)


LAUNCHES = """
import runpy, time
end = time.time() + 240
main = runpy.run_path({example!r})["main"]
while time.time() < end:
    main()
"""


def test_kernels_of_the_simulated_device(folder: Path) -> None:
    pytest.importorskip("asc")
    example = Path(__file__).resolve().parents[3] / "examples" / "pyasc" / "add_queues.py"
    (folder / "launches.py").write_text(LAUNCHES.format(example=str(example)))
    words = [sys.executable, "-m", "npuscope", "monitor", "run", "--simulate", str(folder / "launches.py")]
    with serving(folder) as daemon, running(folder, words, agents(folder)) as process:
        known(daemon, [process.pid])
        flags = ("--mspti-activity-kind", "Kernel,RuntimeAPI", "--report-interval-s", "1")
        monitor(daemon, "--npu-monitor-start", *flags, "--log-file", str(folder / "out"))

        def kernels() -> list[tuple[str, int]]:
            query = "select s.value, t.endNs - t.startNs from TASK t join COMPUTE_TASK_INFO c using (globalTaskId) " \
                "join STRING_IDS s on s.id = c.name"  # fmt: skip
            for path in (folder / "out").glob("*.db"):
                with contextlib.closing(sqlite3.connect(path)) as database:
                    return database.execute(query).fetchall()
            return []

        wait_until(lambda: len(kernels()) > 2, 120, "no kernel came")
        monitor(daemon, "--npu-monitor-stop")
        shows(daemon, process.pid, monitor="Idle", monitorEnded="stopped")
        assert {name for name, _ in kernels()} == {"add_kernel"}
        assert len({length for _, length in kernels()}) == 1  # modelled: the same each time
