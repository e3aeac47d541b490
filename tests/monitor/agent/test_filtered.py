"""The filter by `dyno` against a PyTorch process that trains: its steps are kernels called MatMul and Conv2D in turn,
and copies of memory."""

from __future__ import annotations

from collections import Counter

import pytest
from agent.conftest import Job
from agent.jobs import log, monitor, runs, shows, steps
from training import wait_until

START = ("--npu-monitor-start", "--mspti-activity-kind", "Kernel,MemCpy")
LONGEST = "Kernel:" + ",".join(f"op{number:04d}" for number in range(144)) + ",Conv2D,a"


def collected(job: Job, filter: str) -> Counter[str]:
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--filter", filter)
    shows(job.daemon, job.pid, monitor="Running")
    steps(job, 12)
    monitor(job.daemon, "--npu-monitor-stop")
    wait_until(lambda: len(runs(job.folder, job.pid)) == before + 1, 90)
    shows(job.daemon, job.pid, monitor="Idle")
    run = runs(job.folder, job.pid)[-1]
    assert run["kinds"].count("MemCpy") > 3  # FIL-06: these are never filtered
    assert run["kinds"].count("Kernel") == len(run["names"])
    return Counter(run["names"])


@pytest.mark.parametrize(
    ("filter", "names"),
    [
        ("Kernel:MatMul", {"MatMul"}),  # FIL-01
        ("Kernel:MatMul,Conv2D", {"MatMul", "Conv2D"}),  # FIL-02
        ("Kernel:MatMul;Communication:AllReduce", {"MatMul"}),  # FIL-03
        ("Kernel:Mat", {"MatMul"}),  # FIL-04
        ("", {"MatMul", "Conv2D"}),  # FIL-05
        ("InvalidKind:Op", set()),  # FIL-08
        ("oops;Kernel:2D", {"Conv2D"}),
        ("Kernel:卷积", set()),
        (LONGEST[:1024], {"Conv2D", "MatMul"}),
    ],
)
def test_only_what_it_names_is_collected(job: Job, filter: str, names: set[str]) -> None:
    found = collected(job, filter)
    assert set(found) == names and all(count > 3 for count in found.values())


def test_bad_entries_are_named_in_the_log_and_by_the_command_line(job: Job) -> None:
    before = len(runs(job.folder, job.pid))
    done = monitor(job.daemon, *START, "--duration", "0.1", "--filter", "InvalidKind:Op")
    assert "'InvalidKind:Op' is skipped" in done.stderr
    wait_until(lambda: "the filter entry 'InvalidKind:Op' is skipped" in log(job.folder, job.pid), 60)
    wait_until(lambda: len(runs(job.folder, job.pid)) == before + 1, 90)  # it has begun, and is over
    shows(job.daemon, job.pid, monitor="Idle")


def test_it_changes_while_the_monitor_runs(job: Job) -> None:
    before = len(runs(job.folder, job.pid))
    monitor(job.daemon, *START, "--filter", "Kernel:MatMul")
    shows(job.daemon, job.pid, monitor="Running")
    steps(job, 12)
    for number in range(5):  # many in a short time: the last one counts
        monitor(job.daemon, "--mspti-activity-kind", "Kernel", "--filter", f"Kernel:{'nothing' * number or 'x'}")
    steps(job, 4)
    monitor(job.daemon, "--mspti-activity-kind", "Kernel,MemCpy", "--filter", "Kernel:Conv")
    wait_until(lambda: job.daemon.ask('{"fn":"getStatus"}')["summary"]["waiting"] == 0, 60)
    steps(job, 50)  # it has been fetched, but not yet been obeyed
    seen = len(log(job.folder, job.pid))
    monitor(job.daemon, "--npu-monitor-stop")
    wait_until(lambda: len(runs(job.folder, job.pid)) == before + 1, 90)
    names = runs(job.folder, job.pid)[-1]["names"]
    assert "a monitor runs already" not in log(job.folder, job.pid)[seen:]
    change = names.index("Conv2D")
    assert set(names[:change]) == {"MatMul"} and set(names[change:]) <= {"Conv2D"}
