"""Runs real Triton scripts as a user does: a file, a process of its own, a cache folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "src"
LIMIT_S = 300

Front = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def front(tmp_path: Path) -> Front:
    """`front(verb, text, *options)`: the process that ran `npuscope verb *options script.py`, done."""

    def run(
        verb: str, text: str, *options: str, after: Sequence[str] = (), folder: str = ".", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        script = place / "kernels.py"
        script.write_text(textwrap.dedent(text))
        rest = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
        path = os.pathsep.join([str(SOURCE), *([environment.pop("ahead")] if "ahead" in environment else [])])
        variables = {**rest, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache"), **environment}
        return subprocess.run(
            [sys.executable, "-m", "npuscope", verb, *options, str(script), *after],
            capture_output=True, text=True, check=False, timeout=LIMIT_S, env=variables,
        )  # fmt: skip

    return run
