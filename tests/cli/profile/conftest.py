"""`msopprof` in this process for the tests of it; the application that it runs is a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from npuscope.cli.msopprof.main import run

SOURCE = Path(__file__).resolve().parents[3] / "src"


class Results:
    """What a run with --output=out left in a folder."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"

    @property
    def root(self) -> Path:
        """The one folder of results."""
        (found,) = self.out.iterdir()
        assert re.fullmatch(r"OPPROF_\d{14}_[A-Z]+", found.name)
        return found

    @property
    def folders(self) -> list[str]:
        """Folders of launches, relative to the root."""
        root = self.root
        return sorted({str(path.parent.relative_to(root)) for path in root.rglob("OpBasicInfo*.csv")})

    @property
    def status(self) -> dict[str, Any]:
        """What `status.json` says."""
        document: dict[str, Any] = json.loads((self.root / "status.json").read_text())
        return document


@pytest.fixture(scope="module", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of tests beside these are no runs "on this device"."""
    folder = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Of the test's own folder."""
    return Results(tmp_path)


@pytest.fixture
def msopprof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `msopprof --output=out` to its end, in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MSOPT_LOG_LEVEL", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))

    def start(*words: str | Path) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = run(
            ["--output=out", *map(str, words)]
            if words[0] != "simulator"
            else ["simulator", "--output=out", *map(str, words[1:])]
        )
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(words, code, out, err)

    return start


@pytest.fixture(scope="session")
def msopprof_in() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `msopprof --output=out` in a process of its own on a script of a text, in a folder: for fixtures that several
    tests share."""
    pytest.importorskip("asc")

    def start(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
        (folder / "script.py").write_text(text)
        mode = ["simulator"] if words[:1] == ("simulator",) else []
        options = [*mode, "--output=out", *words[len(mode) :]]
        command = [sys.executable, "-m", "npuscope.cli.msopprof", *options, sys.executable, "script.py"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MSOPT_LOG_LEVEL": "1"}
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    return start
