"""Real processes and real kernels for the tests of the commands."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuscope.cli.main import main

SOURCE = Path(__file__).resolve().parents[2] / "src"

HEAD = """\
import os, signal, subprocess, sys
import numpy as np
import asc
import asc.runtime.config as config
config.set_platform(config.Backend.Model)

@asc.jit
def copy(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    target = asc.GlobalTensor()
    target.set_global_buffer(z)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 128)
    asc.data_copy(tile, source, n)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.data_copy(target, tile, n)

@asc.jit
def other(x: asc.GlobalAddress, n: int):
    source = asc.GlobalTensor()
    source.set_global_buffer(x)
    tile = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 128)
    asc.data_copy(tile, source, n)

def launch(n, blocks=1):
    copy[blocks](np.ones(64, np.float32), np.zeros(64, np.float32), n)

def launch_other(n):
    other[1](np.ones(64, np.float32), n)

"""
"""`launch(64)` is clean; `launch(128)` reads and writes 64 elements too many, an error on lines READ and WRITE."""

READ = HEAD.splitlines().index("    asc.data_copy(tile, source, n)") + 1
WRITE = HEAD.splitlines().index("    asc.data_copy(target, tile, n)") + 1

SOME = """
launch(64)
launch(128)
launch_other(128)
launch(64, 2)
sys.exit(7)
"""
"""A clean launch, one with two errors, one with an error of another kernel, one whose two blocks write all of z."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment() -> dict[str, str]:
    """This process's, with the package of this tree first."""
    rest = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *([rest] if rest else [])])}


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script that has `launch` and ends in the text given."""
    pytest.importorskip("asc")

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(HEAD + textwrap.dedent(text))
        return path

    return write


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script that does SOME, its trace, and the live reports of all checks in every form."""
    pytest.importorskip("asc")
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "script.py").write_text(HEAD + SOME)
    words = ["--format", "text,json,sarif,junit,github,vendor", "--output", "live", "--save", "trace", "script.py"]
    done = subprocess.run(
        [sys.executable, "-m", "npuscope", "check", *words], cwd=folder, env=environment(), capture_output=True,
        text=True, check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    return folder


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Any]:
    """Start `npuscope` or another module of it in a fresh process, in the test's own folder."""

    def start(*arguments: str | Path, module: str = "npuscope", **options: Any) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", module, *map(str, arguments)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(words, text=True, cwd=tmp_path, env=environment(), **streams)

    return start


@pytest.fixture
def npuscope(command: Callable[..., Any]) -> Run:
    """Run `npuscope` to its end."""

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        process = command(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return run


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run `npuscope` in this process: for traces and for what is refused, which start no program."""

    def run(*arguments: str | Path, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["npuscope", *map(str, arguments)])
        linecache.clearcache()
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code, out, err)  # type: ignore[arg-type]

    return run


@pytest.fixture
def mssanitizer(npuscope: Run) -> Run:
    """Run `mssanitizer` to its end."""
    return lambda *arguments, **options: npuscope(*arguments, module="npuscope.cli.mssanitizer", **options)
