"""`mssanitizer` on real programs."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from npuscope.cli.mssanitizer import run

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], Path]:
    """Write an executable shell script."""

    def write(text: str) -> Path:
        path = tmp_path / "program.sh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


def test_python_and_its_arguments(mssanitizer: Run, script: Write) -> None:
    """Found on PATH, options after it are its own, its output comes first, its exit code is kept."""
    path = script("print(sys.argv[1:])\nlaunch(128)\nsys.exit(5)\n")
    done = mssanitizer("--tool=memcheck", "--", sys.executable, path, "-t", "racecheck")
    assert done.returncode == 5
    assert done.stdout.startswith("['-t', 'racecheck']\n[mssanitizer] Start memcheck sanitizer on kernel copy\n")
    assert "====== ERROR: illegal read of size 256\n" in done.stdout
    assert "====== memcheck: ERROR SUMMARY: 2 errors, 0 warnings (0 suppressed)\n" in done.stdout
    assert done.stderr == f"[mssanitizer] user program {sys.executable} exited abnormally\n"


def test_a_shell_script_with_two_pythons(mssanitizer: Run, script: Write, shell: Callable[[str], Path]) -> None:
    """Children of children; a signal; 128 + n; other forms beside the text; a trace that gives the same text."""
    script("launch(128)\n", "one.py")
    script("launch(64)\n", "two.py")
    program = shell(f'"{sys.executable}" one.py\n"{sys.executable}" two.py\nkill -SEGV $$')
    done = mssanitizer("--format", "json", "--output", "r", "--save", "kept", program)
    assert done.returncode == 128 + signal.SIGSEGV
    assert done.stderr.endswith("exited by signal(11)\n")
    text = done.stdout
    assert text.count("[mssanitizer] Start memcheck sanitizer on kernel copy") == 2
    assert "See all detected errors above." in text and "No error detected." in text
    assert json.loads((program.parent / "r.json").read_text())["launches"] == 2
    replayed = mssanitizer("--replay", "kept")
    partial = "====== PARTIAL: the program was ended by signal 11 (Segmentation fault)\n"
    assert (replayed.returncode, replayed.stdout + partial) == (0, text)


def test_a_script_that_is_not_executable(mssanitizer: Run, script: Write) -> None:
    """Runs in this interpreter; --error-exitcode counts errors only at or above the level."""
    path = script("launch(128)\n")
    assert mssanitizer("--error-exitcode", "4", path.name).returncode == 4
    assert mssanitizer("--error-exitcode=4", "--kernel-name", "none", path.name).returncode == 0


def test_the_log_file(mssanitizer: Run, script: Write, tmp_path: Path) -> None:
    """Reports go there, nothing to standard output; for the owner only; emptied first."""
    log = tmp_path / "out.log"
    log.write_text("old")
    log.chmod(0o644)
    done = mssanitizer("--log-file", "out.log", script("print('mine')\nlaunch(128)\n"))
    assert done.stdout == "mine\n"
    assert log.read_text().startswith("[mssanitizer] Start memcheck")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_file_that_cannot_be_opened(mssanitizer: Run, script: Write, tmp_path: Path) -> None:
    """The program is not launched."""
    done = mssanitizer("--log-file", "none/out.log", script("open('ran', 'w')\n"))
    assert (done.returncode, done.stderr) == (
        2, "[mssanitizer] ERROR: cannot open --log-file none/out.log: No such file or directory\n"
    )
    assert not (tmp_path / "ran").exists()


def test_log_levels(mssanitizer: Run, script: Write) -> None:
    """At `error` stomps are gone, and counted as suppressed."""
    path = script("launch(64, 2)\n")
    assert "WARNING: out of bounds of size 256" in mssanitizer(path).stdout
    quiet = mssanitizer("--log-level", "error", path).stdout
    assert "WARNING" not in quiet
    assert "memcheck: ERROR SUMMARY: 0 errors, 0 warnings (1 suppressed)" in quiet


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "no program specified"),
        (["./none.sh"], "program ./none.sh does not exist"),
        (["plain.txt"], "program plain.txt is not executable"),
        (["--chip", "910Z", "plain.txt"], None),
        (["--suppressions", "none", "plain.txt"], "cannot read none: No such file or directory"),
        (["--replay", "plain.txt"], "plain.txt: not a trace of this program"),
    ],
)
def test_what_cannot_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str],
    line: str | None,
) -> None:
    """One line, exit 2."""
    (tmp_path / "plain.txt").write_text("text\n")
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith("[mssanitizer] ERROR: ")
    assert line is None or err == f"[mssanitizer] ERROR: {line}\n"


def test_a_program_that_cannot_be_executed(mssanitizer: Run, tmp_path: Path) -> None:
    """Executable by its mode alone."""
    path = tmp_path / "odd"
    path.write_bytes(b"\x00\x01\x02")
    path.chmod(0o755)
    done = mssanitizer("odd")
    assert done.returncode == 2
    assert done.stderr.startswith(f"[mssanitizer] ERROR: cannot run {path}: Exec format error\n")


def test_heap_modes_leave_kernels_alone(mssanitizer: Run, script: Write) -> None:
    """What the host does is looked at, what the kernels do is not."""
    done = mssanitizer("--check-device-heap=yes", "--error-exitcode=3", script("launch(128)\n"))
    assert done.returncode == 0
    assert "[mssanitizer] No active sanitizer tool on kernel copy.\n" in done.stdout
    assert "memcheck: ERROR SUMMARY: 0 errors, 0 warnings (0 suppressed); no kernel was checked\n" in done.stdout


def test_help_and_version(capfd: pytest.CaptureFixture[str]) -> None:
    """To standard output; a bad option gives the vendor's line first."""
    assert run(["--help"]) == 0
    assert "--trace-non-default-spr-reg" in capfd.readouterr().out
    assert run(["-v"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("mssanitizer ")
    assert err == "WARNING: '-v' is deprecated; use '-V' instead.\n"
    assert run(["--bogus"]) == 2
    assert capfd.readouterr().err.splitlines()[0] == "[mssanitizer] ERROR: unrecognized command"


def test_a_program_without_kernels(mssanitizer: Run) -> None:
    """Said in the summary, never clean."""
    done = mssanitizer("true")
    assert done.returncode == 0
    assert "memcheck: ERROR SUMMARY: 0 errors, 0 warnings (0 suppressed); nothing checked: no kernel" in done.stdout


def test_ctrl_c(command: Callable[..., Any], script: Write) -> None:
    """The vendor's words, what was seen so far, 130."""
    path = script("launch(128)\nprint('ready', flush=True)\nimport time\ntime.sleep(60)\n")
    process = command(path, module="npuscope.cli.mssanitizer")
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Ctrl-C received. Running kernel will be killed, and you can press Ctrl-C again to force quit.\n" in err
    assert "illegal write of size 256" in out
    assert out.endswith("====== PARTIAL: interrupted by Ctrl-C\n")
