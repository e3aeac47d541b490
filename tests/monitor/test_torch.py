"""Stock PyTorch, unchanged, in processes of its own: it registers, and its traces are real."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from daemon_process import Daemon
from perfetto import slices
from training import operators, order, running, status, stepping, wait_until, written


@pytest.fixture
def pair(daemon: Daemon) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two training loops that have registered."""
    pytest.importorskip("torch")
    with running(daemon.folder) as one, running(daemon.folder) as other:
        stepping(daemon, [one.pid, other.pid])
        yield [one, other]


def test_duration_and_iteration_traces_of_stock_pytorch(daemon: Daemon, pair: list[subprocess.Popen[bytes]]) -> None:
    first, other = (loop.pid for loop in pair)
    asked = order(daemon, f"{daemon.folder}/both.json", [first], duration_ms=4000)
    assert asked["activityProfilersTriggered"] == [first]
    assert "loop.py" in asked["processes"][0]["command"]
    # A duration trace of both, through the command.
    done = daemon.dyno("gputrace", "--log-file", f"{daemon.folder}/x.json", "--duration-ms", "300", "--wait", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Matched 2 processes" in done.stdout
    assert f"process {first} is busy, not traced" in done.stdout
    assert f"process {other} is traced" in done.stdout
    wait_until(lambda: {process["state"] for process in status(daemon).values()} == {"idle"}, 60)
    for path in (daemon.folder / f"both_{first}.json", daemon.folder / f"x_{other}.json"):
        assert operators(written(path)), path
        assert slices(path) > 0
    trace = written(daemon.folder / f"both_{first}.json")
    assert int(trace["trace_id"]) == asked["processes"][0]["traceId"]

    done = daemon.dyno(
        "gputrace", "--pids", str(first), "--iterations", "3", "--log-file", f"{daemon.folder}/i.json", "--wait", "60"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = written(daemon.folder / f"i_{first}.json")["traceEvents"]
    steps = [event for event in found if event["name"].startswith("Optimizer.step#")]
    assert len({event["ts"] for event in steps if event["cat"] == "user_annotation"}) == 3
    assert slices(daemon.folder / f"i_{first}.json") > 0
    assert not (daemon.folder / f"i_{other}.json").exists()
