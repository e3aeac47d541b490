"""ASYNC-01 to ASYNC-07 and what comes with them, by `dyno nputrace` against a PyTorch process that trains."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent import jobs
from agent.conftest import Job, serving
from agent.jobs import log, shows, state, steps
from agent.trace.bench import leftovers, lives, metadata, output, parsers, traces
from daemon_process import environment, python
from training import running, wait_until

pytest.importorskip("torch")

LOOP = """
import time
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.time() + 600
while time.time() < end:
    optimizer.zero_grad()
    model(torch.randn(4, 32)).sum().backward()
    optimizer.step()
    time.sleep(0.02)
"""
HOLD = """
import os, signal, sys
if "npuscope.monitor.agent.trace.parse" in sys.orig_argv and os.path.exists(__file__.replace("sitecustomize.py", "hold")):
    os.kill(os.getpid(), signal.SIGSTOP)
"""
"""What every Python of the job does first: a parser stands still while there is a file called hold."""
SECONDS = 120.0
DELIVERED = {"trace_view.json", "operator_details.csv", "op_statistic.csv", "step_trace_time.csv"}


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    """A process that trains with an agent."""
    folder = Path(tempfile.mkdtemp(prefix="npuscope-", dir="/tmp"))
    try:
        (folder / "sitecustomize.py").write_text(HOLD)
        with serving(folder) as daemon, running(folder, jobs.words(folder, LOOP), jobs.agents(folder)) as process:
            jobs.known(daemon, [process.pid])
            yield Job(daemon, process.pid, folder)
    finally:
        shutil.rmtree(folder)


def nputrace(job: Job, into: str, *flags: str, code: int = 0) -> Path:
    """`dyno nputrace`; returns where the trace goes."""
    folder = job.folder / into
    done = job.daemon.dyno("nputrace", "--log-file", str(folder), *flags)
    assert done.returncode == code, done.stdout + done.stderr
    return folder


BESIDE = ("--analyse", "--async-mode")
TIME = ("--duration-ms", "400")
STEPS = ("--iterations", "3", "--start-step", "-1")


def held(job: Job, into: str, *flags: str) -> tuple[Path, int]:
    """The same with a parser, which stands still until it is let go; returns its number, too."""
    hold = job.folder / "hold"
    hold.touch()
    try:
        folder = nputrace(job, into, *flags, *BESIDE)
        wait_until(lambda: [state_of(one) for one in parsers(job.pid)] == ["T"], SECONDS, "no parser was started")
    finally:
        hold.unlink()
    return folder, parsers(job.pid)[0]


def state_of(pid: int) -> str:
    """T: stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def recorded(folder: Path) -> Path:
    """The only trace of a folder, once its raw data is there."""
    wait_until(lambda: len(traces(folder)) == 1, SECONDS, "no trace was recorded")
    return traces(folder)[0]


def delivered(trace: Path) -> set[str]:
    """What a trace holds, once it is parsed."""
    wait_until(output(trace).exists, SECONDS, "the trace was not parsed")
    return {path.name for path in output(trace).iterdir()}


def settled(job: Job) -> None:
    """Wait until nobody records or parses."""
    wait_until(lambda: not parsers(job.pid), SECONDS, "a parser does not end")
    wait_until(lambda: "parsing" not in state(job.daemon)[job.pid], SECONDS, "the status does not end")
    shows(job.daemon, job.pid, trace="Idle")


@pytest.mark.parametrize("when", [TIME, STEPS], ids=["time", "steps"])
def test_training_goes_on_while_another_process_parses(job: Job, when: tuple[str, ...]) -> None:  # ASYNC-01, 03, 07
    folder, parser = held(job, f"beside{when[0]}", *when)  # it may take as long as it likes
    try:
        trace = recorded(folder)
        shows(job.daemon, job.pid, trace="Idle", parsing=1)
        steps(job, 20)
        assert not output(trace).exists() and lives(parser)
        assert python_of(parser) != job.pid and os.getsid(parser) == parser != os.getsid(job.pid)
        assert job.daemon.dyno("npu-monitor", "--npu-monitor-stop").returncode == 0  # nothing there to stop
    finally:
        os.kill(parser, signal.SIGCONT)
    assert delivered(trace) >= DELIVERED
    settled(job)
    assert leftovers(job.folder) == []
    assert f"[{parser}] parsed in" in (trace / "logs" / "parser.log").read_text()


def python_of(pid: int) -> int:
    """The number of a process that is one's own, and no thread's."""
    return int(Path(f"/proc/{pid}/stat").read_text().split()[0])


@pytest.mark.parametrize("when", [TIME, STEPS], ids=["time", "steps"])
def test_without_the_option_the_process_parses_itself(job: Job, when: tuple[str, ...]) -> None:  # ASYNC-02, 04
    folder = nputrace(job, f"inline{when[0]}", *when, "--analyse", "--record-shapes")
    trace = recorded(folder)
    assert delivered(trace) >= DELIVERED
    assert f"[{job.pid}] parsed in" in (trace / "logs" / "parser.log").read_text()
    settled(job)
    # The same recording, parsed by a process: the same files, to the byte.
    copy = job.folder / f"copy{when[0]}"
    shutil.copytree(trace, copy, ignore=shutil.ignore_patterns("ASCEND_PROFILER_OUTPUT", "logs"))
    words = [sys.executable, "-P", "-m", "npuscope.monitor.agent.trace.parse", str(copy)]
    subprocess.run(words, env=environment(job.folder), check=True, timeout=120)
    assert contents(copy) == contents(trace)


def contents(trace: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output(trace).iterdir()}


def test_two_in_a_row_do_not_disturb_each_other(job: Job) -> None:  # ASYNC-05
    first, slow = held(job, "first", *STEPS)
    try:
        recorded(first)
        shows(job.daemon, job.pid, trace="Idle", parsing=1)
        second = nputrace(job, "second", *STEPS, *BESIDE, "--export-type", "Db")
        assert delivered(recorded(second)) == {"ascend_pytorch_profiler.db"}
        assert not output(recorded(first)).exists()
    finally:
        os.kill(slow, signal.SIGCONT)
    assert delivered(recorded(first)) >= DELIVERED
    settled(job)
    assert leftovers(job.folder) == []


def test_a_parser_that_is_killed_harms_nobody(job: Job) -> None:  # ASYNC-06
    before = state(job.daemon)[job.pid].get("tracesFailed", 0)
    folder, parser = held(job, "killed", *STEPS)
    trace = recorded(folder)
    half = trace / f"ASCEND_PROFILER_OUTPUT.{parser}.part"  # as if it were writing
    half.mkdir()
    os.kill(parser, signal.SIGKILL)
    shows(job.daemon, job.pid, trace="Idle", tracesFailed=before + 1)
    line = f"the parser of {trace} was killed by signal 9"
    wait_until(lambda: line in log(job.folder, job.pid), SECONDS, "the log does not tell")
    steps(job, 5)
    settled(job)
    assert leftovers(job.folder) == [] and not output(trace).exists()
    done = python(["npuscope", "monitor", "parse", str(folder)], environment(job.folder))
    assert done.returncode == 0 and "trace_view.json" in done.stdout and delivered(trace) >= DELIVERED


def test_without_analyse_the_data_stays_raw(job: Job) -> None:
    folder = nputrace(job, "raw", *STEPS, "--async-mode")
    trace = recorded(folder)
    settled(job)
    assert not output(trace).exists() and "--async-mode has no effect" in log(job.folder, job.pid)


def test_monitor_and_trace_exclude_each_other(job: Job) -> None:
    nputrace(job, "long", "--duration-ms", "3000")
    shows(job.daemon, job.pid, trace="Running")
    refused = job.daemon.dyno("npu-monitor", "--npu-monitor-start")
    assert refused.returncode == 1 and "ineffective" in refused.stdout
    shows(job.daemon, job.pid, trace="Idle")
    assert job.daemon.dyno("npu-monitor", "--npu-monitor-start", "--duration", "60").returncode == 0
    shows(job.daemon, job.pid, monitor="Running")
    nputrace(job, "refused", *STEPS, code=1)
    assert job.daemon.dyno("npu-monitor", "--npu-monitor-stop").returncode == 0
    shows(job.daemon, job.pid, monitor="Idle")
    settled(job)
    assert metadata(recorded(job.folder / "long"))["partial"] == ""


def test_options_without_a_meaning_are_answered(job: Job) -> None:
    folder = nputrace(job, "options", *STEPS, "--l2-cache", "--aic-metrics", "Memory", "--sys-io")
    recorded(folder)
    for flag in ("--l2-cache", "--aic-metrics Memory", "--sys-io"):
        assert f"{flag} has no meaning without an NPU" in log(job.folder, job.pid)


def test_a_job_that_dies_is_cleaned_up_after(tmp_path: Path, job: Job) -> None:
    told: dict[str, Any] = {"unharmed": False}
    with running(job.folder, jobs.words(job.folder, LOOP), jobs.agents(job.folder), **told) as other:
        jobs.known(job.daemon, [other.pid])
        folder = nputrace(job, "dies", "--duration-ms", "3600000", *BESIDE, "--pids", str(other.pid))
        shows(job.daemon, other.pid, trace="Running")
        (parser,) = parsers(other.pid)
        os.kill(other.pid, signal.SIGKILL)
        other.wait(60)
        wait_until(lambda: not lives(parser), SECONDS, "the parser waits for a dead process")
    assert traces(folder) == [] and leftovers(job.folder) == []
    steps(job, 2)
