"""What a person gets wrong, and what a disk does: one line, exit 2."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import orjson
import pytest

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--nonsense"], "no such option: --nonsense"),
        (["--check", "leaks"], "no check is called leaks; there are memory, race,"),
        (["--format", "yaml"], "no report format is called yaml; there are text, json"),
        (["--format", "text,json"], "2 formats need --output PREFIX"),
        (["--dcci", "maybe"], "Invalid value for '--dcci'"),
        (["--launch-skip", "-1"], "Invalid value for '--launch-skip'"),
        (["--error-exitcode", "256"], "Invalid value for '--error-exitcode'"),
        (["--kernel-regex", "("], "--kernel-regex (: "),
        (["--suppressions", "none.txt"], "cannot read none.txt: No such file or directory"),
        (["--suppressions", "bad.txt"], "bad.txt:2: a rule starts with a class"),
        (["--suppressions", "binary"], "cannot read binary: it is not text"),
        (["--baseline", "bad.txt"], "bad.txt: not a JSON report of this version"),
        (["--output", "none/r"], "cannot write none/r: no such folder as none"),
        (["--output", "."], "Invalid value for '--output'"),
        (["--save", "none/t"], "cannot write none/t: no such folder as none"),
        (["--chip", "910Z"], "910Z"),
    ],
)
def test_options(inside: Run, tmp_path: Path, words: list[str], line: str) -> None:
    """Found out before the script runs."""
    (tmp_path / "s.py").write_text("print('ran')\n")
    (tmp_path / "bad.txt").write_text("leak\nkernel=x\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    done = inside("check", *words, "s.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("npuscope: ") and line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_traces(npuscope: Run, inside: Run, script: Write, tmp_path: Path) -> None:
    """Of another version, cut short, without a launch's end; a trace takes no arguments."""
    assert npuscope("record", "-o", "good", script("launch(64)\n")).returncode == 0
    assert inside("check", "good").returncode == 0
    with zipfile.ZipFile(tmp_path / "good") as old, zipfile.ZipFile(tmp_path / "later", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, orjson.dumps({**orjson.loads(data), "version": 99}) if name == "trace.json" else data)
        new.comment = old.comment
    whole = (tmp_path / "good").read_bytes()
    (tmp_path / "short").write_bytes(whole[: len(whole) // 2] + whole[-40:])
    for words, line in (
        (["later"], "later: trace version 99, this npuscope reads "),
        (["short"], "short: not a readable trace"),
        (["good", "argument"], "a recorded trace takes no --chip, no --save and no arguments"),
        (["--chip", "910B1", "good"], "a recorded trace takes no"),
    ):
        done = inside("check", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert line in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("option", ["--output", "--save"])
def test_a_full_disk(npuscope: Run, script: Write, option: str) -> None:
    """The device that is always full: one line after the script's own output, and it is still a device."""
    done = npuscope("check", option, "/dev/full", script("print('ran')\nlaunch(64)\n"))
    assert (done.returncode, done.stdout) == (2, "ran\n")
    assert done.stderr.splitlines()[-1] == "npuscope: cannot write /dev/full: No space left on device"
    assert Path("/dev/full").is_char_device()


def test_a_report_that_nobody_can_read(npuscope: Run, script: Write) -> None:
    """Standard error is full: the exit code has to say it."""
    with open("/dev/full", "w") as full:
        assert npuscope("check", script("launch(64)\n"), stderr=full).returncode == 2


