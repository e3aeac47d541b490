"""Stock PyTorch: when a trace starts, what happens to a second request, and what becomes of a job that ends."""

from __future__ import annotations

import os
import signal
import time

import pytest
from daemon_process import Daemon
from perfetto import slices
from training import operators, order, running, status, stepping, wait_until, written

AHEAD_SECONDS = 8.0


def test_a_start_time_is_kept_and_a_second_request_is_refused_meanwhile(daemon: Daemon) -> None:
    pytest.importorskip("torch")
    with running(daemon.folder) as job:
        stepping(daemon, [job.pid])
        start = time.time() + AHEAD_SECONDS
        first = order(daemon, f"{daemon.folder}/late.json", start_time_ms=int(start * 1000), duration_ms=3000)
        assert first["activityProfilersTriggered"] == [job.pid]
        waiting = order(daemon, f"{daemon.folder}/second.json")  # the process would drop it without a word
        assert waiting["activityProfilersTriggered"] == [] and waiting["activityProfilersBusy"] == 1
        wait_until(lambda: status(daemon)[job.pid]["state"] == "tracing", 60, "it was never seen to trace")
        during = order(daemon, f"{daemon.folder}/second.json")
        assert during["activityProfilersTriggered"] == [] and during["activityProfilersBusy"] == 1
        assert during["reason"] == "every matching process is busy"

        path = daemon.folder / f"late_{job.pid}.json"
        trace = written(path)
        assert int(trace["trace_id"]) == first["processes"][0]["traceId"]
        epoch = int(trace["baseTimeNanoseconds"]) / 1e9
        began = epoch + min(float(event["ts"]) for event in operators(trace)) / 1e6
        assert abs(began - start) < 1.0
        assert slices(path) > 0

        wait_until(lambda: status(daemon)[job.pid]["state"] == "idle", 60)
        assert order(daemon, f"{daemon.folder}/third.json", duration_ms=200)["activityProfilersTriggered"] == [job.pid]
        written(daemon.folder / f"third_{job.pid}.json")
        assert not list(daemon.folder.glob("second_*"))


def test_a_job_that_ends_before_its_trace_is_written_is_forgotten(daemon: Daemon) -> None:
    pytest.importorskip("torch")
    with running(daemon.folder, unharmed=False) as job:
        stepping(daemon, [job.pid])
        order(daemon, f"{daemon.folder}/lost.json", duration_ms=60_000)
        wait_until(lambda: status(daemon)[job.pid]["state"] == "tracing", 60, "it was never seen to trace")
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(10)
        assert status(daemon) == {}
        words = ("gputrace", "--log-file", f"{daemon.folder}/next.json", "--wait", "60")
        done = daemon.dyno(*words)
        assert done.returncode == 1 and "no PyTorch process is registered" in done.stderr
        assert not (daemon.folder / f"lost_{job.pid}.json").exists()
