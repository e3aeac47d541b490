"""Stock PyTorch, unchanged, in processes of its own: it registers, and its traces are real."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, environment

from npuscope.monitor.protocol import config, rpc

LOOP = """
import os, sys, time, torch
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.time() + 240
while time.time() < end:
    optimizer.zero_grad()
    model(torch.randn(4, 32)).sum().backward()
    optimizer.step()
    open(f"{sys.argv[1]}/steps_{os.getpid()}", "a").close()  # it registers when torch is imported, long before
    time.sleep(0.02)
"""


def status(daemon: Daemon) -> dict[int, Any]:
    return {process["pid"]: process for process in daemon.ask(rpc.simple_request("getStatus"))["processes"]}


def wait_until(holds: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "not within the time allowed"
        time.sleep(0.1)


@pytest.fixture
def pair(daemon: Daemon) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two training loops that have registered."""
    pytest.importorskip("torch")
    script, base = daemon.folder / "loop.py", daemon.folder / "kineto.conf"
    script.write_text(LOOP)
    base.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")  # five seconds, without it
    env = environment(daemon.folder, KINETO_USE_DAEMON="1", KINETO_CONFIG=str(base), OMP_NUM_THREADS="1")
    loops = [
        subprocess.Popen(
            [sys.executable, str(script), str(daemon.folder)],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    try:
        wait_until(lambda: status(daemon).keys() >= {loop.pid for loop in loops}, 90)
        wait_until(lambda: all((daemon.folder / f"steps_{loop.pid}").exists() for loop in loops), 90)
        yield loops
        assert [loop.poll() for loop in loops] == [None, None]  # no answer did them harm
    finally:
        for loop in loops:
            loop.kill()
            loop.wait(10)


def events(path: Path) -> list[dict[str, Any]]:
    trace = json.loads(path.read_bytes())
    assert trace["schemaVersion"] == 1
    return list(trace["traceEvents"])


def test_duration_and_iteration_traces_of_stock_pytorch(daemon: Daemon, pair: list[subprocess.Popen[bytes]]) -> None:
    first, other = (loop.pid for loop in pair)
    # A duration trace of both, through the command and without its five seconds of warming up.
    text = (
        config.build(config.Trace(f"{daemon.folder}/both.json", duration_ms=4000)) + "\nACTIVITIES_WARMUP_PERIOD_SECS=0"
    )
    asked = daemon.ask(rpc.trace_request(text, 0, [first], 3))
    assert asked["activityProfilersTriggered"] == [first]
    assert "loop.py" in asked["processes"][0]["command"]
    done = daemon.dyno("gputrace", "--log-file", f"{daemon.folder}/x.json", "--duration-ms", "300", "--wait", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Matched 2 processes" in done.stdout
    assert f"process {first} is busy, not traced" in done.stdout
    assert f"process {other} is traced" in done.stdout
    wait_until(lambda: {process["state"] for process in status(daemon).values()} == {"idle"}, 60)
    wait_until((daemon.folder / f"both_{first}.json").exists, 30)
    for path in (daemon.folder / f"both_{first}.json", daemon.folder / f"x_{other}.json"):
        assert any(event.get("cat") == "cpu_op" for event in events(path)), path
    trace = json.loads((daemon.folder / f"both_{first}.json").read_bytes())
    assert int(trace["trace_id"]) == asked["processes"][0]["traceId"]

    done = daemon.dyno(
        "gputrace", "--pids", str(first), "--iterations", "3", "--log-file", f"{daemon.folder}/i.json", "--wait", "60"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [
        event for event in events(daemon.folder / f"i_{first}.json") if event["name"].startswith("Optimizer.step#")
    ]
    assert len({event["ts"] for event in steps if event["cat"] == "user_annotation"}) == 3
    assert not (daemon.folder / f"i_{other}.json").exists()
