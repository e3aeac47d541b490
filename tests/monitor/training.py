"""Training jobs of stock PyTorch, unchanged, in processes of their own."""

from __future__ import annotations

import ctypes.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from daemon_process import Daemon, environment

from npuscope.monitor.protocol import config, rpc

CHECKER = ctypes.util.find_library("c_malloc_debug")  # glibc's allocator checks nothing without it, since 2.34
STRICT = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165", "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"} | (
    {"LD_PRELOAD": CHECKER} if CHECKER else {}
)
"""For a job that must not write to memory out of turn: its allocator ends it then."""
REGISTER_SECONDS = 90.0
FAST = "\nACTIVITIES_WARMUP_PERIOD_SECS=0"
"""Without its five seconds of warming up."""

LOOP = """
import os, sys, time, torch

def train(folder, seconds=240):
    torch.set_num_threads(1)
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    end = time.time() + seconds
    while time.time() < end:
        optimizer.zero_grad()
        model(torch.randn(4, 32)).sum().backward()
        optimizer.step()
        open(f"{folder}/steps_{os.getpid()}", "a").close()  # it registers when torch is imported, long before
        time.sleep(0.02)

if __name__ == "__main__":
    train(sys.argv[1])
"""


def status(daemon: Daemon) -> dict[int, Any]:
    """The registered processes by their numbers."""
    return {process["pid"]: process for process in daemon.ask(rpc.simple_request("getStatus"))["processes"]}


def wait_until(holds: Callable[[], object], seconds: float, what: str = "not within the time allowed") -> None:
    """Wait until it holds; fails, saying what did not happen."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def training(folder: Path) -> dict[str, str]:
    """The environment of a job that the daemon of `folder` may trace, and that asks it each second, not every five."""
    base = folder / "kineto.conf"
    base.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    return environment(folder, KINETO_USE_DAEMON="1", KINETO_CONFIG=str(base), OMP_NUM_THREADS="1")


def script(folder: Path, text: str = LOOP, name: str = "loop.py") -> Path:
    """A script in the folder."""
    path = folder / name
    path.write_text(text)
    return path


@contextmanager
def running(
    folder: Path, command: Sequence[str] | None = None, env: dict[str, str] | None = None, *, unharmed: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    """A job, ended with its children afterwards; `unharmed` demands that it runs until then."""
    words = command or [sys.executable, str(script(folder)), str(folder)]
    with (folder / "job.log").open("ab") as log:
        job = subprocess.Popen(
            words,
            env=env or training(folder),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield job
        assert not unharmed or job.poll() is None, (folder / "job.log").read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait(10)


def stepping(daemon: Daemon, pids: Sequence[int]) -> None:
    """Wait until the processes have registered and train."""
    wait_until(lambda: status(daemon).keys() >= set(pids), REGISTER_SECONDS, "a process did not register")
    wait_until(
        lambda: all((daemon.folder / f"steps_{pid}").exists() for pid in pids),
        REGISTER_SECONDS,
        "a process did not train",
    )


def order(daemon: Daemon, log_file: str, pids: Sequence[int] = (0,), limit: int = 3, **what: Any) -> Any:
    """The daemon's reply to a request for a trace without warming up."""
    text = config.build(config.Trace(log_file, **what)) + FAST
    return daemon.ask(rpc.trace_request(text, 0, pids, limit))


def written(path: Path, seconds: float = 60.0) -> dict[str, Any]:
    """The trace in a file, when it has been written."""
    wait_until(path.exists, seconds, f"{path} was not written")
    trace = json.loads(path.read_bytes())
    assert trace["schemaVersion"] == 1
    return dict(trace)


def operators(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """What PyTorch's operators left in a trace."""
    return [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
