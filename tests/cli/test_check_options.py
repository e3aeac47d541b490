"""`npuscope check`: choice of checks, forms, suppressions, baseline, filters, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]

SOME = """
launch(64)
launch(128)
launch_other(128)
sys.exit(7)
"""
"""A clean launch, one with two errors, one with an error of another kernel; the script's own code is 7."""


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 1), (["--error-exitcode", "9"], 9), (["--error-exitcode", "0"], 7), (["--kernel-name", "none"], 7)],
)
def test_exit_codes(npuscope: Run, script: Write, options: list[str], code: int) -> None:
    """Findings, another code for them, none, and no findings: the script's own."""
    assert npuscope("check", *options, script(SOME)).returncode == code


def test_last_lines(npuscope: Run, script: Write) -> None:
    """What each check came to, then what was looked at."""
    lines = npuscope("check", "--check", "memory", "--kernel-name", "copy", script(SOME)).stderr.splitlines()
    assert "memory: 2 errors, 0 warnings" in lines
    assert lines[-1] == "2 launches, 10 instructions checked, 1 launch left out by filters."


@pytest.mark.parametrize(
    ("options", "errors", "launches", "skipped"),
    [
        (["--kernel-name", "opy"], 2, 2, 1),
        (["--kernel-regex", "^other$"], 1, 1, 2),
        (["--kernel-name-exclude", "copy"], 1, 1, 2),
        (["--launch-skip", "1", "--launch-count", "1"], 2, 1, 2),
        (["--block-id", "5"], 0, 3, 0),
        (["--max-per-site", "1", "--print-limit", "0"], 3, 3, 0),
    ],
)
def test_filters(npuscope: Run, script: Write, options: list[str], errors: int, launches: int, skipped: int) -> None:
    """Which launches are checked, and that what an option hides is counted."""
    document = json.loads(npuscope("check", "--format", "json", *options, script(SOME)).stderr)
    assert (document["errors"], document["launches"], document["skipped"]) == (errors, launches, skipped)
    assert document["errors"] + document["suppressed"] == 3 or skipped


def test_suppressions(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """Generated rules silence what they were made for; one that is of no use is noted; what is hidden is counted."""
    path = script(SOME)
    generated = npuscope("check", "--gen-suppressions", path).stderr.split("# rules for what was found\n")[1]
    assert len(generated.splitlines()) == 3
    (tmp_path / "rules.txt").write_text(generated + "leak kernel=gone\n")
    done = npuscope("check", "--suppressions", "rules.txt", path)
    assert done.returncode == 7
    assert "memory: clean, 3 suppressed\n" in done.stderr
    assert "note: rules.txt:4: the rule for leak matched nothing\n" in done.stderr


def test_baseline(npuscope: Run, script: Write) -> None:
    """Only what is new counts, though lines have moved."""
    path = script("launch(128)\n")
    assert npuscope("check", "--format", "json", "-o", "old.json", path).returncode == 1
    path.write_text(path.read_text().replace("import numpy as np\n", "import numpy as np\n\n\n") + "launch_other(128)\n")
    done = npuscope("check", "--baseline", "old.json", path)
    assert done.returncode == 1
    assert "memory: 1 error, 0 warnings, 2 suppressed\n" in done.stderr
    assert "in other" in done.stderr


def test_fail_fast(npuscope: Run, script: Write) -> None:
    """The script ends at the first launch with an error that nothing suppresses."""
    done = npuscope("check", "--fail-fast", script("print('a')\nlaunch(64)\nlaunch(128)\nprint('b')\n"))
    assert (done.returncode, done.stdout) == (1, "a\n")
    assert done.stderr.endswith("2 launches, 10 instructions checked. Partial: stopped at the first error (--fail-fast).\n")


def test_comment_in_the_source(npuscope: Run, script: Write) -> None:
    """An allowance on the line."""
    path = script("launch_other(128)\n")
    path.write_text(path.read_text().replace("(tile, source, n)\n", "(tile, source, n)  # npuscope: allow[illegal-*]\n"))
    done = npuscope("check", path)
    assert (done.returncode, "memory: clean, 1 suppressed\n" in done.stderr) == (0, True)


def test_strict(npuscope: Run, script: Write) -> None:
    """A warning fails the run only then."""
    path = script("launch(64, 2)\n")  # both blocks write all of z
    assert npuscope("check", path).returncode == 0
    done = npuscope("check", "--strict", path)
    assert (done.returncode, "[overwrite]" in done.stderr) == (1, True)


def test_all_forms_at_once_and_from_a_trace(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """A file a form; the trace kept beside them gives the same bytes in every form."""
    path = script(SOME)
    forms = ["--format", "text,json,sarif,junit,github,vendor", "--output"]
    assert npuscope("check", *forms, "live", "--save", "kept.trace", path).returncode == 1
    suffixes = ("txt", "json", "sarif", "xml", "github", "log")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        ["kept.trace", "script.py", *(f"live.{suffix}" for suffix in suffixes)]
    )
    assert npuscope("check", *forms, "replay", "kept.trace").returncode == 1
    for suffix in suffixes:
        assert (tmp_path / f"live.{suffix}").read_bytes() == (tmp_path / f"replay.{suffix}").read_bytes()
