"""Real processes and real kernels for the tests of the commands."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
def mssanitizer(npuscope: Run) -> Run:
    """Run `mssanitizer` to its end."""
    return lambda *arguments, **options: npuscope(*arguments, module="npuscope.cli.mssanitizer", **options)
