"""The example that ends the demonstration: a live trace of two jobs, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from daemon_process import SOURCE

EXAMPLE = SOURCE.parent / "examples" / "torch" / "live_trace.py"


def started(mark: str) -> subprocess.Popen[str]:
    pytest.importorskip("torch")
    env = os.environ | {"PYTHONPATH": str(SOURCE), "NPUSCOPE_TEST_MARK": mark}
    return subprocess.Popen(
        [sys.executable, str(EXAMPLE)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def marked(mark: str) -> list[str]:
    """The processes, wherever they come from, that were started with the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"NPUSCOPE_TEST_MARK={mark}\0".encode() in path.read_bytes() + b"\0":
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_the_example_traces_two_running_jobs_and_cleans_up() -> None:
    mark = f"whole-{os.getpid()}"
    example = started(mark)
    out, err = example.communicate(timeout=180)
    assert example.returncode == 0 and err == "", out + err
    assert "Matched 2 processes" in out
    traces = re.findall(r"trace_(\d+)\.json: 5 optimizer steps, (\d+) operators", out)
    assert len(traces) == 2 and all(int(operators) > 100 for _, operators in traces)
    assert "aten::" in out
    assert marked(mark) == []
    folder = re.search(r"--log-file (/tmp/npuscope-[^/]+)/", out)
    assert folder and not Path(folder[1]).exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing_behind(number: signal.Signals, code: int) -> None:
    mark = f"cut-{number}-{os.getpid()}"
    example = started(mark)
    deadline = time.monotonic() + 60
    while len(marked(mark)) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(marked(mark)) >= 4  # itself, the daemon, two jobs
    example.send_signal(number)
    _, err = example.communicate(timeout=60)
    assert example.returncode == code and err == ""
    assert marked(mark) == []
