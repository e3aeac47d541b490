"""docs/profiler.md: its commands run, its rules are those that there are, its pictures are there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "profiler.md").read_text()
ADVICE = ROOT / "src" / "npuscope" / "profiler" / "advice"
SECONDS = 300


def blocks(language: str) -> list[str]:
    """The page's blocks of code."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", *words]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Every command of the page, run in its order in one folder that has the examples; what each printed."""
    pytest.importorskip("asc")
    folder = tmp_path_factory.mktemp("page")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "my_rules.py").write_text(blocks("python")[0])
    found = {}
    for line in "".join(blocks("sh")).splitlines():
        done = run(shlex.split(line), folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        found[line] = done.stdout
    return folder, found


def answer(answers: tuple[Path, dict[str, str]], part: str) -> str:
    return next(text for command, text in answers[1].items() if part in command)


def test_the_commands(answers: tuple[Path, dict[str, str]]) -> None:
    assert len(answers[1]) == 8
    assert "(modelled)" in answer(answers, "-o slow") and "Lines to fix first" in answer(answers, "-o slow")
    assert "Ascend910B4" in answer(answers, "--chip 910B4 softmax.trace")
    assert "[MY-W1] small writes" in answer(answers, "my_rules.py")


def test_two_runs_of_one_kernel_are_equal(answers: tuple[Path, dict[str, str]]) -> None:
    """T56 of the specification: no differences, with and without running."""
    for part in ("-o new --baseline", "28>+10%"):
        text = answer(answers, part)
        assert "nothing changed" in text and "ok: cycles>+5%" in text and "FAILED" not in text


def test_a_limit_that_is_broken_fails_the_run(answers: tuple[Path, dict[str, str]]) -> None:
    folder, _ = answers
    file = next((folder / "slow").rglob("profile.json"))
    document = json.loads(file.read_text())
    document["launches"][0]["cycles"] *= 2
    (folder / "twice.json").write_text(json.dumps(document))
    done = run(["npuscope", "profile", "--baseline", str(file), "--fail-if", "cycles>+5%", "twice.json"], folder)
    assert done.returncode == 1 and "FAILED: cycles>+5%" in done.stdout + done.stderr


def test_the_files_that_are_named(answers: tuple[Path, dict[str, str]]) -> None:
    report = answers[0] / "slow" / "report"
    assert (report / "index.html").read_bytes().startswith(b"<!doctype html>")
    assert json.loads((report / "profile.json").read_text())["format"] == "npuscope profile"


def test_every_rule_is_in_the_table() -> None:
    ids = set(re.findall(r'Advice\(\s*"([A-Z][\w-]+)"', "".join(file.read_text() for file in ADVICE.glob("*.py"))))
    ids -= {"MY-C1"}  # the example of a user's rule
    table = PAGE.split("## Advice")[1]
    assert len(ids) >= 18
    assert [one for one in sorted(ids) if f"`{one}`" not in table] == []


def test_pictures_and_links() -> None:
    for link in re.findall(r"\]\((\w[^)#]*)\)", PAGE):
        if link != "timing.md":  # written by the timing benchmark
            assert (ROOT / "docs" / link).is_file(), link
