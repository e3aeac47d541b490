"""DUR-01 to DUR-06 and what comes with them, by `dyno` against a PyTorch process that trains."""

from __future__ import annotations

import socket

import pytest
from agent.conftest import Job
from agent.jobs import length, log, monitor, runs, shows
from daemon_process import environment, python
from training import wait_until

START = ("--npu-monitor-start", "--mspti-activity-kind", "Kernel,MemCpy", "--report-interval-s", "1")
STOP = ("--npu-monitor-stop",)
EXACT = 0.010


def finished(job: Job, count: int) -> dict:
    wait_until(lambda: len(runs(job.folder, job.pid)) == count, 90, "the collection did not end")
    return runs(job.folder, job.pid)[-1]


def test_a_duration_ends_by_itself(job: Job) -> None:  # DUR-01
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--duration", "10")
    shows(job.daemon, job.pid, monitor="Running")
    assert job.daemon.ask('{"fn":"getStatus"}')["npumonitor"] == "Running"
    run = finished(job, before + 1)
    assert abs(length(run) - 10) < EXACT
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="expired")
    assert job.daemon.ask('{"fn":"getStatus"}')["npumonitor"] == "Idle"
    assert run["rank"] == 3 and len(run["starts"]) > 10
    assert run["started"] <= min(run["starts"]) and max(run["starts"]) <= run["ended"]


def test_no_duration_runs_until_a_stop(job: Job) -> None:  # DUR-02, DUR-06
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--duration", "0")
    shows(job.daemon, job.pid, monitor="Running")
    monitor(job.daemon, *STOP)
    finished(job, before + 1)
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="stopped")
    warnings = log(job.folder, job.pid).count("nothing to stop")
    monitor(job.daemon, *STOP)
    wait_until(lambda: log(job.folder, job.pid).count("nothing to stop") == warnings + 1, 60)
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="stopped")
    assert len(runs(job.folder, job.pid)) == before + 1


@pytest.mark.parametrize("seconds", ["0.5", "0.001", "0.333333"])
def test_a_part_of_a_second(job: Job, seconds: str) -> None:  # DUR-03
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--duration", seconds)
    assert abs(length(finished(job, before + 1)) - float(seconds)) < EXACT
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="expired")


def test_a_stop_ends_it_early(job: Job) -> None:  # DUR-04
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--duration", "3600")
    shows(job.daemon, job.pid, monitor="Running")
    monitor(job.daemon, *START)  # once more, and nothing happens but a warning
    wait_until(lambda: "a monitor runs already" in log(job.folder, job.pid), 60)
    monitor(job.daemon, *STOP)
    assert length(finished(job, before + 1)) < 600
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="stopped")


def test_a_stop_right_after_a_start_is_not_turned_away(job: Job) -> None:
    before = len(runs(job.folder, job.pid))
    for _ in range(3):
        monitor(job.daemon, *START)
        monitor(job.daemon, *STOP)
    finished(job, before + 3)
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="stopped")


def test_a_start_as_the_old_one_expires(job: Job) -> None:
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--duration", "1")
    wait_until(lambda: "Running" in str(job.daemon.ask('{"fn":"getStatus"}')["npumonitor"]), 60)
    monitor(job.daemon, *START, "--duration", "2")  # while it runs, or after it: either is allowed, none may be lost
    shows(job.daemon, job.pid, monitor="Idle", monitorEnded="expired")
    monitor(job.daemon, *START, "--duration", "1")
    wait_until(lambda: len(runs(job.folder, job.pid)) > before + 1, 90)
    assert all(abs(length(run) - round(length(run))) < EXACT for run in runs(job.folder, job.pid)[before:])


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--duration", "-1"), "Must be a positive number"),  # DUR-05
        (("--duration=-1",), "Must be a positive number"),
        (("--duration", "nan"), "Must be a positive number"),
        (("--filter", "x" * 1025), "The input string is too long, max allowed: 1024"),  # FIL-07
        (("--mspti-activity-kind", "Kernel,Oops"), "Invalid MSPTI activity kind: Oops"),
    ],
)
def test_the_command_line_refuses_before_anything_is_sent(flags: tuple[str, ...], text: str, folder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = [
            "npuscope.cli.dyno",
            "--hostname",
            "127.0.0.1",
            "--port",
            str(listener.getsockname()[1]),
            "npu-monitor",
        ]
        done = python([*words, "--npu-monitor-start", *flags], environment(folder))
        assert done.returncode != 0 and text in done.stderr
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
