"""`npuscope check`: choice of checks, forms, suppressions, baseline, filters, exit codes.

Most of them are the same for a script and for a recorded trace: one script is recorded, and its trace checked here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]

@pytest.fixture
def check(inside: Run, recorded: Path, tmp_path: Path) -> Run:
    """Check the trace, beside its script, with options."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)

    def run(*options: str, checks: tuple[str, ...] = ("--check", "memory")) -> CompletedProcess[str]:
        return inside("check", *checks, *options, "trace")

    return run


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 1), (["--error-exitcode", "9"], 9), (["--error-exitcode", "0"], 0), (["--kernel-name", "none"], 0)],
)
def test_exit_codes(check: Run, options: list[str], code: int) -> None:
    """Findings, another code for them, none, and no findings."""
    assert check(*options).returncode == code


@pytest.mark.parametrize(("options", "code"), [(["--error-exitcode", "0"], 7), (["--kernel-name", "none"], 7)])
def test_the_scripts_own_code(npuscope: Run, script: Write, options: list[str], code: int) -> None:
    """Where findings do not count, or there are none."""
    assert npuscope("check", *options, script("launch(128)\nsys.exit(7)\n")).returncode == code


def test_last_lines(check: Run) -> None:
    """What each check came to, then what was looked at."""
    lines = check("--kernel-name", "copy").stderr.splitlines()
    assert "memory: 2 errors, 1 warning" in lines
    assert "race: not run (not asked for)" in lines
    assert lines[-1] == "3 launches, 20 instructions checked, 1 launch left out by filters."


@pytest.mark.parametrize(
    ("options", "errors", "launches", "skipped", "suppressed"),
    [
        (["--kernel-name", "opy"], 2, 3, 1, 0),
        (["--kernel-regex", "^other$"], 1, 1, 3, 0),
        (["--kernel-name-exclude", "copy"], 1, 1, 3, 0),
        (["--launch-skip", "1", "--launch-count", "1"], 2, 1, 3, 0),
        (["--block-id", "5"], 0, 4, 0, 4),
        (["--max-per-site", "1", "--print-limit", "0"], 3, 4, 0, 1),
    ],
)
def test_filters(check: Run, options: list[str], errors: int, launches: int, skipped: int, suppressed: int) -> None:
    """Which launches are checked, and that what an option hides is counted."""
    document = json.loads(check("--format", "json", *options).stderr)
    assert (document["errors"], document["launches"], document["skipped"]) == (errors, launches, skipped)
    assert document["suppressed"] == suppressed


def test_suppressions(check: Run, tmp_path: Path) -> None:
    """Generated rules silence what they were made for; one that is of no use is noted; what is hidden is counted."""
    generated = check("--gen-suppressions").stderr.split("# rules for what was found\n")[1]
    assert len(generated.splitlines()) == 4
    (tmp_path / "rules.txt").write_text(generated + "leak kernel=gone\n")
    done = check("--suppressions", "rules.txt")
    assert done.returncode == 0
    assert "memory: clean, 4 suppressed\n" in done.stderr
    assert "note: rules.txt:5: the rule for leak matched nothing\n" in done.stderr


def test_baseline(npuscope: Run, check: Run, tmp_path: Path) -> None:
    """Only what is new counts, though lines have moved."""
    assert check("--format", "json", "-o", "old.json").returncode == 1
    path = tmp_path / "script.py"
    moved = path.read_text().replace("import numpy as np\n", "import numpy as np\n\n\n")
    path.write_text(moved.replace("asc.data_copy(tile, source, n)\n\ndef", "asc.data_copy(tile, source, n - 8)\n\ndef"))
    done = npuscope("check", "--check", "memory", "--baseline", "old.json", "script.py")
    assert done.returncode == 1
    assert "memory: 1 error, 0 warnings, 3 suppressed\n" in done.stderr
    assert "illegal read in other" in done.stderr


def test_fail_fast(npuscope: Run, script: Write, check: Run) -> None:
    """The script ends at the first launch with an error that nothing suppresses; so does a trace."""
    done = npuscope("check", "--fail-fast", script("print('a')\nlaunch(64)\nlaunch(128)\nprint('b')\n"))
    assert (done.returncode, done.stdout) == (1, "a\n")
    ending = "2 launches, 10 instructions checked. Partial: stopped at the first error (--fail-fast).\n"
    assert done.stderr.endswith(ending)
    assert check("--fail-fast").stderr.endswith(ending)


def test_comment_in_the_source(check: Run, tmp_path: Path) -> None:
    """An allowance on the line."""
    path = tmp_path / "script.py"
    path.write_text(path.read_text().replace("(tile, source, n)\n", "(tile, source, n)  # npuscope: allow[illegal-*]\n"))
    assert "memory: clean, 1 suppressed\n" in check("--kernel-name", "other").stderr


def test_strict(check: Run) -> None:
    """A warning fails the run only then."""
    assert check("--launch-skip", "3").returncode == 0
    done = check("--launch-skip", "3", "--strict")
    assert (done.returncode, "[overwrite]" in done.stderr) == (1, True)


def test_a_trace_gives_the_same_bytes_in_every_form(inside: Run, recorded: Path) -> None:
    """Live and from the trace that was kept beside it, with every check."""
    forms = "text,json,sarif,junit,github,vendor"
    assert inside("check", "--format", forms, "--output", "replay", "trace", folder=recorded).returncode == 1
    for suffix in ("txt", "json", "sarif", "xml", "github", "log"):
        assert (recorded / f"live.{suffix}").read_bytes() == (recorded / f"replay.{suffix}").read_bytes()


def test_every_check_by_default(check: Run) -> None:
    """Without --check, all run."""
    text = check(checks=()).stderr
    for name in ("memory", "race", "init", "sync", "registers", "dcci"):
        assert f"\n{name}: " in text
    assert "not run" not in text
