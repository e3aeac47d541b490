"""docs/sanitizer.md names every option and shows what really is printed; every class of docs/checks.md has a title."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from npuscope.cli.check_options import OPTIONS
from npuscope.cli.mssanitizer_options import ADDED, VENDOR
from npuscope.report.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sanitizer.md").read_text()


def test_every_option_is_there() -> None:
    """Of npuscope check, mssanitizer and the plugin."""

    def command() -> int:
        return 0

    for decorate in OPTIONS:
        decorate(command)
    names = [option.opts[0] for option in command.__click_params__]  # type: ignore[attr-defined]
    names += [f"--{name}" for name in (*VENDOR, *ADDED)]
    names += re.findall(r'"(--npuscope[\w-]*)"', (ROOT / "src/npuscope/pytest_plugin.py").read_text())
    missing = [name for name in names if not re.search(rf"{name}\b", PAGE)]
    assert len(names) > 50 and not missing


def test_the_run_that_is_shown() -> None:
    """The annotations and last lines are those of today."""
    pytest.importorskip("asc")
    words = [sys.executable, "-m", "npuscope", "check", "--format", "github", "examples/bugs/ub_overrun.py"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "GITHUB_WORKSPACE": str(ROOT)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr in PAGE


def test_every_class_that_a_check_names_has_a_title() -> None:
    """Every string in the checks that looks like a class, but for what is none."""
    text = "".join(path.read_text() for path in (ROOT / "src/npuscope/sanitizer").rglob("*.py"))
    kinds = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', text)) - {"cross-core"}
    assert len(kinds) > 25
    assert not kinds - set(KINDS)


def test_every_documented_class_has_a_title() -> None:
    """First column of the tables of docs/checks.md."""
    kinds: set[str] = set()
    for line in (ROOT / "docs" / "checks.md").read_text().splitlines():
        if line.startswith("| `"):
            kinds |= set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", line.split("|")[1]))
    assert len(kinds) > 15
    assert not kinds - set(KINDS)
