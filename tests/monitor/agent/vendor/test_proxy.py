"""The proxy between a caller, as torch_npu is one, and a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon

from npuscope import mstx
from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.agent import equipment, occupancy
from npuscope.monitor.agent.commands import Command
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.vendor.proxy import PyDynamicMonitorProxy
from npuscope.monitor.protocol import rpc

PATIENCE = 60.0


class Kept:
    """A processor that keeps what it gets."""

    def __init__(self, command: Command, run: Run) -> None:
        self.command, self.run = command, run
        self.batches: list[Batch] = []
        self.closed = threading.Event()

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)

    def report(self, now: int) -> None:
        """Nothing to do."""

    def close(self) -> None:
        self.closed.set()

    @property
    def counts(self) -> Mapping[str, int]:
        return {}

    @property
    def names(self) -> list[str]:
        return [self.run.strings.texts[number] for batch in self.batches for number in batch["name"]]


@pytest.fixture
def home_daemon(start: Callable[..., Daemon], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A daemon with the sockets of the vendor's plug-in, found by this process."""
    monkeypatch.setenv("NPUSCOPE_IPC_DIR", str(folder))
    yield start("--ipc", "home")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Kept]]:
    """The processors that were made; the proxy is this test's own."""
    monkeypatch.setenv("MSMONITOR_LOG_PATH", str(tmp_path))
    found: list[Kept] = []

    def build(command: Command, run: Run) -> Kept:
        found.append(Kept(command, run))
        return found[-1]

    monkeypatch.setattr(equipment, "builder", lambda send: build)
    yield found
    PyDynamicMonitorProxy.finalize_dyno()


def wait_until(holds: Callable[[], object]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def processes(daemon: Daemon) -> dict[int, Any]:
    """Those the daemon knows, by pid."""
    return {process["pid"]: process for process in daemon.ask(rpc.simple_request("getStatus"))["processes"]}


def read(text: str) -> dict[str, str]:
    """As torch_npu does: lines of KEY=VALUE."""
    return dict(line.strip().split("=", 1) for line in text.splitlines() if "=" in line)


def test_without_a_daemon(kept: list[Kept], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said, quickly, and nothing is thrown."""
    monkeypatch.setenv("NPUSCOPE_IPC_DIR", str(folder))
    proxy = PyDynamicMonitorProxy()
    assert proxy.init_dyno(0) is False
    assert proxy.poll_dyno() == ""
    proxy.update_profiler_status({"profiler_status": "0"})
    proxy.finalize_dyno()
    proxy.finalize_dyno()


def test_from_registration_to_the_end(home_daemon: Daemon, kept: list[Kept]) -> None:
    """A caller's whole life: register, poll, obey a start and a stop, report, leave."""
    proxy = PyDynamicMonitorProxy()
    assert proxy.init_dyno(0) is True
    assert proxy.init_dyno(0) is True  # a second call only warns
    assert proxy.poll_dyno() == ""
    wait_until(lambda: os.getpid() in processes(home_daemon))
    asked = home_daemon.dyno("npu-monitor", "--npu-monitor-start", "--duration", "0", "--filter", "Marker:step")
    assert asked.returncode == 0, asked.stderr
    text = wait_until(proxy.poll_dyno)
    assert read(text)["NPU_MONITOR_START"] == "true" and read(text)["MSPTI_ACTIVITY_KIND"] == "Marker"
    proxy.enable_dyno_npu_monitor(read(text))
    (processor,) = wait_until(lambda: kept)
    wait_until(lambda: occupancy.in_the_way_of(object()))
    mstx.range_end(mstx.range_start("step 1"))
    mstx.mark("other")
    proxy.enable_dyno_npu_monitor({"NPU_MONITOR_STOP": "True"})
    assert processor.closed.wait(PATIENCE)
    assert processor.names == ["step 1", "step 1"] and processor.command.filter == "Marker:step"
    proxy.update_profiler_status({"profiler_status": "1", "current_step": "5", "start_step": "3", "stop_step": "9"})
    wait_until(lambda: "5" in json.dumps(home_daemon.ask(rpc.simple_request("getStatus"))))
    proxy.finalize_dyno()
    assert occupancy.in_the_way_of(object()) == ""


def test_a_poll_never_lags_behind(home_daemon: Daemon, kept: list[Kept]) -> None:
    """The answer to a registration, which the vendor's plug-in mistakes for one to its first poll, is not in the way:
    once a command waits at the daemon, the very next poll has it."""
    proxy = PyDynamicMonitorProxy()
    assert proxy.init_dyno(0)
    assert proxy.poll_dyno() == ""
    wait_until(lambda: os.getpid() in processes(home_daemon))
    for _ in range(3):
        assert home_daemon.dyno("npu-monitor", "--npu-monitor-stop").returncode == 0
        found = [proxy.poll_dyno(), proxy.poll_dyno()]
        # On a slow machine the answer may take longer than is waited for; then it comes with the poll after.
        assert sum("NPU_MONITOR_STOP" in text for text in found) == 1


def test_a_command_that_means_nothing(kept: list[Kept], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logged; nothing is started, nothing is thrown."""
    monkeypatch.setenv("NPUSCOPE_IPC_DIR", str(folder))
    proxy = PyDynamicMonitorProxy()
    proxy.enable_dyno_npu_monitor({"NPU_MONITOR_START": "true", "DURATION": "nan"})
    proxy.enable_dyno_npu_monitor(None)  # type: ignore[arg-type]
    proxy.update_profiler_status({})
    proxy.update_profiler_status({"profiler_status": "x"})
    proxy.finalize_dyno()
    assert kept == []


def test_it_keeps_out_while_a_trace_runs(kept: list[Kept], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has said that its profiler runs; and another's trace counts as well."""
    monkeypatch.setenv("NPUSCOPE_IPC_DIR", str(folder))
    proxy = PyDynamicMonitorProxy()
    proxy.update_profiler_status({"profiler_status": "1"})
    proxy.enable_dyno_npu_monitor({"NPU_MONITOR_START": "true"})
    proxy.finalize_dyno()  # what was submitted is carried out first
    occupied = object()
    occupancy.enter(occupied, lambda: "a trace is running")
    proxy.enable_dyno_npu_monitor({"NPU_MONITOR_START": "true"})
    proxy.finalize_dyno()
    occupancy.leave(occupied)
    assert kept == []
    proxy.enable_dyno_npu_monitor({"NPU_MONITOR_START": "true"})
    proxy.finalize_dyno()
    assert [processor.closed.is_set() for processor in kept] == [True]


CALLER = """
import multiprocessing, os, sys, time

def worker(pipe, loop):
    # As torch_npu's DynMonitorProc: it alone registers and polls.
    from IPCMonitor import PyDynamicMonitorProxy
    proxy = PyDynamicMonitorProxy()
    assert proxy.init_dyno(0)
    while loop.value:
        time.sleep(0.05)
        if text := proxy.poll_dyno():
            pipe.send(dict(line.strip().split("=", 1) for line in text.splitlines() if "=" in line))

if __name__ == "__main__":
    from npuscope.monitor.agent.vendor import supply
    supply()
    from npuscope.monitor.activity.kinds import Kind
    from npuscope.monitor.agent import equipment
    sys.path.insert(0, sys.argv[2])
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    loop = context.Value("b", True)
    context.Process(target=worker, args=(theirs, loop), daemon=True, name="DynMonitorProc").start()
    from IPCMonitor import PyDynamicMonitorProxy
    import mstx
    from test_proxy import Kept
    kept = []
    equipment.builder = lambda send: lambda command, run: kept.append(Kept(command, run)) or kept[-1]
    end = time.monotonic() + 120
    step = 0
    while time.monotonic() < end and not (kept and kept[0].closed.is_set()):
        number = mstx.range_start(f"step {step}")
        if ours.poll():
            PyDynamicMonitorProxy().enable_dyno_npu_monitor(ours.recv())
        time.sleep(0.01)
        mstx.range_end(number)
        step += 1
    print(len(kept), len(kept[0].names) > 2, kept[0].run.ended - kept[0].run.started)
    loop.value = False
    PyDynamicMonitorProxy().finalize_dyno()
"""


def test_torch_npus_way(home_daemon: Daemon, tmp_path: Path) -> None:
    """One process registers and polls, another, that never registered, obeys; a duration of 0.5 s is kept, and the
    daemon hears that it is over."""
    script = tmp_path / "caller.py"
    script.write_text(CALLER)
    tests = Path(__file__).resolve().parent
    environment = {
        **os.environ,
        "MSMONITOR_LOG_PATH": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), *sys.path, str(tests), str(tests.parents[1])]),
    }
    job = subprocess.Popen(
        [sys.executable, str(script), "x", str(tests)], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: processes(home_daemon))
        asked = home_daemon.dyno("npu-monitor", "--npu-monitor-start", "--duration", "0.5")
        assert asked.returncode == 0, asked.stdout + asked.stderr
        out, _ = job.communicate(timeout=120)
    finally:
        job.kill()
    count, several, length = out.split()
    assert (count, several) == ("1", "True") and 0.5e9 <= int(length) < 0.51e9
