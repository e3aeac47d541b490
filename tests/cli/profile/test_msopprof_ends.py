"""`msopprof` on real programs: how a run ends that is not left alone (opprof.md 7)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]


WAITS = """
launch(64)
launch_other(64)
print("ready", flush=True)
import time
time.sleep(60)
launch(64)
"""


@pytest.fixture
def started(command: Callable[..., Any], script: Write) -> Callable[[str], Any]:
    """Start `msopprof` on a script and wait until it says that it is ready."""

    def start(text: str) -> Any:
        process = command(
            "--output=out",
            "--launch-count=5",
            "--aic-metrics=BasicInfo",
            sys.executable,
            script(text),
            module="npuscope.cli.msopprof",
        )
        for line in process.stdout:
            if line == "ready\n":
                return process
        raise AssertionError("it ended")

    return start


def test_ctrl_c_once(started: Callable[[str], Any], tmp_path: Path, results: Any) -> None:
    """T24: what was collected is saved; the vendor's words; success."""
    process = started(WAITS)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert (
        "[WARN]  Child process exited with status 130, The process is manually stopped. "
        "The existing data has been saved for subsequent analysis"
    ) in out.splitlines()
    found = results.status
    assert len(found["kernels"]) == 2 and found["partial"] and found["application"]["interrupted"]


GOES_ON = WAITS.replace(
    "time.sleep(60)\nlaunch(64)",
    """
try:
    time.sleep(60)
except BaseException:
    launch(64)
""",
)


def test_no_launch_is_collected_after_ctrl_c(started: Callable[[str], Any], tmp_path: Path, results: Any) -> None:
    """An application that goes on for a while launches in vain."""
    process = started(GOES_ON)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    found = results.status
    assert (found["launches"]["seen"], found["launches"]["kept"]) == (3, 2)


STUBBORN = WAITS.replace("print(", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(")


def test_ctrl_c_twice(started: Callable[[str], Any], tmp_path: Path, results: Any) -> None:
    """T24: at once, no results."""
    process = started(STUBBORN)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not list((tmp_path / "out").glob("*/*.csv")) if (tmp_path / "out").exists() else True


def test_two_at_once(started: Callable[[str], Any], msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T60: the second says so and has a directory of its own."""
    first = started(WAITS)
    path = tmp_path / "second.py"
    path.write_text((tmp_path / "script.py").read_text().replace("time.sleep(60)", "pass"))
    done = msopprof("--aic-metrics=BasicInfo", sys.executable, path)
    assert done.returncode == 0
    assert (
        "[WARN]  another profiling run is under way on this device; this one writes to a directory of its own"
        in done.stdout
    )
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert sorted(
        len(json.loads(path.read_text())["kernels"]) for path in (tmp_path / "out").glob("*/status.json")
    ) == [1, 2]
