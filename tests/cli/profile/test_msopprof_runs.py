"""`msopprof` on real programs: which launches are kept, how a run ends, what is written (opprof.md 7)."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

TWO = """
for turn in range(3):
    launch(64)
    launch_other(64)
"""
"""Six launches: copy, other, copy, other, copy, other."""

CSV = {
    "ArithmeticUtilization",
    "L2Cache",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "OpBasicInfo",
    "PipeUtilization",
    "ResourceConflictRatio",
}
"""What `Default` writes (opprof.md 2.1)."""


@pytest.fixture
def msopprof(npuscope: Run) -> Run:
    """Run `msopprof` with --output=out to its end."""
    return lambda *words, **options: npuscope("--output=out", *words, module="npuscope.cli.msopprof", **options)


def root(tmp_path: Path) -> Path:
    """The one folder of results."""
    (found,) = (tmp_path / "out").iterdir()
    assert re.fullmatch(r"OPPROF_\d{14}_[A-Z]+", found.name)
    return found


def folders(tmp_path: Path) -> list[str]:
    """Folders of launches, relative to the root."""
    top = root(tmp_path)
    return sorted({str(path.parent.relative_to(top)) for path in top.rglob("OpBasicInfo*.csv")})


def status(tmp_path: Path) -> dict[str, Any]:
    """What `status.json` says."""
    document: dict[str, Any] = json.loads((root(tmp_path) / "status.json").read_text())
    return document


def test_one_kernel(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """T01's layout: everything in the root, no suffix, modes 750 and 640, an inventory; the first launch only."""
    done = msopprof(sys.executable, script(TWO + "print('mine')\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"[INFO]  Running device task: {sys.executable} {tmp_path / 'script.py'}"
    assert lines[1:3] == ["mine", "[INFO]  Profiling running finished. All task success."]
    assert "[INFO]  1 of 6 launches are kept; left out: other, copy (--kernel-name, --launch-count)" in lines
    top = root(tmp_path)
    assert lines[-1] == f"[INFO]  Profiling results saved in {top.relative_to(tmp_path)}"
    assert {path.stem for path in top.glob("*.csv")} == CSV
    assert folders(tmp_path) == ["."] and not (top / "tmp_dump").exists()
    for path in (top, *top.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640), path
    found = status(tmp_path)
    assert sorted(found["files"]) == sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())
    assert set(found["files"]) >= {
        "visualize_data.bin",
        "report/profile.json",
        "report/index.html",
        "report/perfetto_trace.json",
    }
    for name in found["files"]:
        assert any(line.startswith("[INFO]  Written in ") and Path(name).name in line for line in lines), name
    assert (found["partial"], found["mode"], found["launches"]["seen"], found["kernels"][0]["source"]) == (
        False,
        "op",
        6,
        "modelled",
    )


def test_two_kernels_three_times(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """T12: folders by kernel and order; CSV files carry the moment in 17 digits."""
    done = msopprof("--launch-count=10", "--aic-metrics=BasicInfo", sys.executable, script(TWO))
    assert done.returncode == 0
    assert folders(tmp_path) == [f"{kernel}/{order}" for kernel in ("copy", "other") for order in range(3)]
    for path in root(tmp_path).rglob("*.csv"):
        assert re.fullmatch(r"OpBasicInfo_\d{17}\.csv", path.name)
    assert "[INFO]  Profiling kernels result is: 6 success, 0 failed." in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--kernel-name=oth*"], ["."]),  # T13: one launch, of `other`
        (["--kernel-name=copy|other", "--launch-count=4", "--launch-skip-before-match=2"],  # T14
         ["copy/0", "copy/1", "other/0", "other/1"]),
        (["--kernel-name=regex:^c..y$", "--launch-count=2"], ["copy/0", "copy/1"]),
    ],
)  # fmt: skip
def test_names(msopprof: Run, script: Write, tmp_path: Path, words: list[str], expected: list[str]) -> None:
    """Prefixes, `*`, `|` and our expressions; the skip comes before the match."""
    assert msopprof(*words, "--aic-metrics=BasicInfo", sys.executable, script(TWO)).returncode == 0
    assert folders(tmp_path) == expected
    kernels = [(item["kernel"], item["launch"]) for item in status(tmp_path)["kernels"]]
    assert kernels == {
        1: [("other", 1)], 4: [("copy", 2), ("other", 3), ("copy", 4), ("other", 5)], 2: [("copy", 0), ("copy", 2)],
    }[len(expected)]  # fmt: skip


def test_no_launch_of_that_name(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """T15: what was launched is named; nothing is left."""
    done = msopprof("--kernel-name=Z", sys.executable, script(TWO))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "[ERROR] No profiling data matched --kernel-name=Z. 6 launches were seen, of: copy, other"
    )
    assert not (tmp_path / "out").exists()


def test_no_launch_at_all(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """The vendor's words; nothing is left."""
    done = msopprof(sys.executable, "-c", "pass")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("[ERROR] Profiling results are empty.")
    assert not (tmp_path / "out").exists()


def test_two_devices(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """T16."""
    text = "import asc.lib.runtime as rt\nfor device in (0, 1):\n    rt.set_device(device)\n    launch(64)\n"
    assert msopprof("--launch-count=2", "--aic-metrics=BasicInfo", sys.executable, script(text)).returncode == 0
    assert folders(tmp_path) == ["device0/copy/0", "device1/copy/0"]
    (table,) = (root(tmp_path) / "device1").rglob("OpBasicInfo*.csv")
    heads, row = (line.split(",") for line in table.read_text().splitlines())
    assert row[heads.index("Device Id")] == "1"


RANGES = """
import mstx
launch(64)
outer = mstx.range_start("R", None)
launch_other(64)
inner = mstx.range_start("S")
launch(64)
mstx.range_end(outer)
launch_other(64)
mstx.range_end(inner)
mstx.mark("R")
launch(64)
"""


@pytest.mark.parametrize(
    ("words", "launches"), [([], [1, 2, 3]), (["--mstx-include=R"], [1, 2]), (["--mstx-include=S|T"], [2, 3])]
)
def test_ranges(msopprof: Run, script: Write, tmp_path: Path, words: list[str], launches: list[int]) -> None:
    """T17: launches inside any range, or inside those of a message."""
    done = msopprof("--mstx=on", "--launch-count=9", "--aic-metrics=BasicInfo", *words, sys.executable, script(RANGES))
    assert done.returncode == 0
    assert [item["launch"] for item in status(tmp_path)["kernels"]] == launches


def test_an_end_when_there_is_enough(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """T18: the application is stopped after the fifth launch; that is success."""
    text = "import time\nfor turn in range(100):\n    launch(64)\n    print(turn, flush=True)\ntime.sleep(60)\n"
    begin = time.monotonic()
    done = msopprof("--kill=on", "--launch-count=5", "--aic-metrics=BasicInfo", sys.executable, script(text))
    assert done.returncode == 0 and time.monotonic() - begin < 50
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["0", "1", "2", "3"]
    assert "[INFO]  Profiling running finished. All task success." in done.stdout.splitlines()
    found = status(tmp_path)
    assert len(found["kernels"]) == 5 and not found["partial"]


def test_an_application_that_catches_everything(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """It is told to end by a signal when it does not end by itself."""
    text = "import time\ntry:\n    launch(64)\nexcept BaseException:\n    pass\ntime.sleep(60)\n"
    begin = time.monotonic()
    assert msopprof("--kill=on", "--aic-metrics=BasicInfo", sys.executable, script(text)).returncode == 0
    assert time.monotonic() - begin < 50
    assert status(tmp_path)["application"]["stopped"]


def test_launches_of_all_processes_count_together(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """A count of three over two processes; in the order in which they happened."""
    script("launch(64)\nlaunch_other(64)\n", "child.py")
    text = "for turn in range(2):\n    subprocess.run([sys.executable, 'child.py'], check=True)\n"
    done = msopprof("--launch-count=3", "--aic-metrics=BasicInfo", sys.executable, script(text))
    assert done.returncode == 0
    assert [(item["kernel"], item["launch"]) for item in status(tmp_path)["kernels"]] == [
        ("copy", 0),
        ("other", 1),
        ("copy", 2),
    ]


def test_an_application_that_fails(msopprof: Run, script: Write, tmp_path: Path) -> None:
    """T26: what it launched is parsed, and the failure is said."""
    done = msopprof("--aic-metrics=BasicInfo", sys.executable, script("launch(64)\nos.kill(os.getpid(), 11)\n"))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "[WARN]  Profiling running finished. May cause generating performance files to fail." in lines
    assert "[WARN]  Running task failed, data parsing start (the application ended with 139)" in lines
    found = status(tmp_path)
    assert found["partial"] and found["application"]["signal"] == 11 and len(found["kernels"]) == 1


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


def test_ctrl_c_once(started: Callable[[str], Any], tmp_path: Path) -> None:
    """T24: what was collected is saved; the vendor's words; success."""
    process = started(WAITS)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert (
        "[WARN]  Child process exited with status 130, The process is manually stopped. "
        "The existing data has been saved for subsequent analysis"
    ) in out.splitlines()
    found = status(tmp_path)
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


def test_no_launch_is_collected_after_ctrl_c(started: Callable[[str], Any], tmp_path: Path) -> None:
    """An application that goes on for a while launches in vain."""
    process = started(GOES_ON)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    found = status(tmp_path)
    assert (found["launches"]["seen"], found["launches"]["kept"]) == (3, 2)


STUBBORN = WAITS.replace("print(", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(")


def test_ctrl_c_twice(started: Callable[[str], Any], tmp_path: Path) -> None:
    """T24: at once, no results."""
    process = started(STUBBORN)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not list((tmp_path / "out").glob("*/*.csv")) if (tmp_path / "out").exists() else True


def test_two_at_once(started: Callable[[str], Any], msopprof: Run, script: Write, tmp_path: Path) -> None:
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
