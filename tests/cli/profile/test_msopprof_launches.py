"""`msopprof` on real programs: which launches are kept and what is written (opprof.md 7)."""

from __future__ import annotations

import re
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


def test_one_kernel(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T01's layout: everything in the root, no suffix, modes 750 and 640, an inventory; the first launch only."""
    done = msopprof(sys.executable, script(TWO + "print('mine')\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"[INFO]  Running device task: {sys.executable} {tmp_path / 'script.py'}"
    assert lines[1:3] == ["mine", "[INFO]  Profiling running finished. All task success."]
    assert "[INFO]  1 of 6 launches are kept; left out: other, copy (--kernel-name, --launch-count)" in lines
    top = results.root
    assert lines[-1] == f"[INFO]  Profiling results saved in {top.relative_to(tmp_path)}"
    assert {path.stem for path in top.glob("*.csv")} == CSV
    assert results.folders == ["."] and not (top / "tmp_dump").exists()
    for path in (top, *top.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640), path
    found = results.status
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


def test_two_kernels_three_times(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T12: folders by kernel and order; CSV files carry the moment in 17 digits."""
    done = msopprof("--launch-count=10", "--aic-metrics=BasicInfo", sys.executable, script(TWO))
    assert done.returncode == 0
    assert results.folders == [f"{kernel}/{order}" for kernel in ("copy", "other") for order in range(3)]
    for path in results.root.rglob("*.csv"):
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
def test_names(
    msopprof: Run, script: Write, tmp_path: Path, results: Any, words: list[str], expected: list[str]
) -> None:
    """Prefixes, `*`, `|` and our expressions; the skip comes before the match."""
    assert msopprof(*words, "--aic-metrics=BasicInfo", sys.executable, script(TWO)).returncode == 0
    assert results.folders == expected
    kernels = [(item["kernel"], item["launch"]) for item in results.status["kernels"]]
    assert kernels == {
        1: [("other", 1)], 4: [("copy", 2), ("other", 3), ("copy", 4), ("other", 5)], 2: [("copy", 0), ("copy", 2)],
    }[len(expected)]  # fmt: skip


def test_no_launch_of_that_name(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T15: what was launched is named; nothing is left."""
    done = msopprof("--kernel-name=Z", sys.executable, script(TWO))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "[ERROR] No profiling data matched --kernel-name=Z. 6 launches were seen, of: copy, other"
    )
    assert not (tmp_path / "out").exists()


def test_no_launch_at_all(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """The vendor's words; nothing is left."""
    done = msopprof(sys.executable, "-c", "pass")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("[ERROR] Profiling results are empty.")
    assert not (tmp_path / "out").exists()


def test_two_devices(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T16."""
    text = "import asc.lib.runtime as rt\nfor device in (0, 1):\n    rt.set_device(device)\n    launch(64)\n"
    assert msopprof("--launch-count=2", "--aic-metrics=BasicInfo", sys.executable, script(text)).returncode == 0
    assert results.folders == ["device0/copy/0", "device1/copy/0"]
    (table,) = (results.root / "device1").rglob("OpBasicInfo*.csv")
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
def test_ranges(
    msopprof: Run, script: Write, tmp_path: Path, results: Any, words: list[str], launches: list[int]
) -> None:
    """T17: launches inside any range, or inside those of a message."""
    done = msopprof("--mstx=on", "--launch-count=9", "--aic-metrics=BasicInfo", *words, sys.executable, script(RANGES))
    assert done.returncode == 0
    assert [item["launch"] for item in results.status["kernels"]] == launches


def test_an_end_when_there_is_enough(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T18: the application is stopped after the fifth launch; that is success."""
    text = "import time\nfor turn in range(100):\n    launch(64)\n    print(turn, flush=True)\ntime.sleep(60)\n"
    begin = time.monotonic()
    done = msopprof("--kill=on", "--launch-count=5", "--aic-metrics=BasicInfo", sys.executable, script(text))
    assert done.returncode == 0 and time.monotonic() - begin < 50
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["0", "1", "2", "3"]
    assert "[INFO]  Profiling running finished. All task success." in done.stdout.splitlines()
    found = results.status
    assert len(found["kernels"]) == 5 and not found["partial"]


def test_an_application_that_catches_everything(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """It is told to end by a signal when it does not end by itself."""
    text = "import time\ntry:\n    launch(64)\nexcept BaseException:\n    pass\ntime.sleep(60)\n"
    begin = time.monotonic()
    assert msopprof("--kill=on", "--aic-metrics=BasicInfo", sys.executable, script(text)).returncode == 0
    assert time.monotonic() - begin < 50
    assert results.status["application"]["stopped"]


def test_launches_of_all_processes_count_together(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """A count of three over two processes; in the order in which they happened."""
    script("launch(64)\nlaunch_other(64)\n", "child.py")
    text = "for turn in range(2):\n    subprocess.run([sys.executable, 'child.py'], check=True)\n"
    done = msopprof("--launch-count=3", "--aic-metrics=BasicInfo", sys.executable, script(text))
    assert done.returncode == 0
    assert [(item["kernel"], item["launch"]) for item in results.status["kernels"]] == [
        ("copy", 0),
        ("other", 1),
        ("copy", 2),
    ]


def test_an_application_that_fails(msopprof: Run, script: Write, tmp_path: Path, results: Any) -> None:
    """T26: what it launched is parsed, and the failure is said."""
    done = msopprof("--aic-metrics=BasicInfo", sys.executable, script("launch(64)\nos.kill(os.getpid(), 11)\n"))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "[WARN]  Profiling running finished. May cause generating performance files to fail." in lines
    assert "[WARN]  Running task failed, data parsing start (the application ended with 139)" in lines
    found = results.status
    assert found["partial"] and found["application"]["signal"] == 11 and len(found["kernels"]) == 1
