"""Windows in which a GPU's work is recorded: without a GPU they stay empty, but open, close and make way all the same.
In jobs under an allocator that ends a process whose memory was written to out of turn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from daemon_process import environment
from training import STRICT

SECONDS = 120

JOB = """
import threading, time
from collections import Counter
import torch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import torch_windows
from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_windows import TorchWindows

torch_windows.LENGTH = 0.02
windows, got = TorchWindows(), []

def start(wait=False):
    windows.start(frozenset({Kind.KERNEL}), Strings(), got.append, wait=wait)

def wait_until(holds):
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)

def products(times):
    with torch.profiler.profile() as own:
        for _ in range(times):
            torch.mm(torch.ones(4, 4), torch.ones(4, 4))
    return Counter(event.name for event in own.events())["aten::mm"]
"""

MAKES_WAY = """
start()
wait_until(lambda: windows.losses.get(torch_windows.BETWEEN, 0) > 2)
for _ in range(20):
    assert products(3) == 3
    wait_until(lambda: not windows._closed.is_set())
windows.flush()
windows.stop()
assert windows.losses[torch_windows.OTHER] == 20
assert not got
assert not torch._C._autograd._profiler_enabled()
"""

WAITS = """
with torch.profiler.profile():
    try:
        start()
    except Unavailable as reason:
        assert "only one" in str(reason)
    else:
        raise AssertionError("two at a time")
    start(wait=True)
    assert windows._closed.is_set()
wait_until(lambda: not windows._closed.is_set())
windows.stop()
"""

END = """
assert not any(thread.name == torch_windows.NAME for thread in threading.enumerate())
"""


def comes_through(folder: Path, text: str) -> None:
    words = [sys.executable, "-X", "faulthandler", "-c", JOB + text + END]
    done = subprocess.run(
        words, env=environment(folder, **STRICT), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_jobs_own_profiler_begins_when_the_window_is_closed(tmp_path: Path) -> None:
    comes_through(tmp_path, MAKES_WAY)


def test_where_the_jobs_own_profiler_runs_there_is_no_window(tmp_path: Path) -> None:
    comes_through(tmp_path, WAITS)
