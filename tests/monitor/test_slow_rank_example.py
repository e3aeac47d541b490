"""The example that ends the demonstration: the slow one among the ranks of a job is named, and nothing is left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import SOURCE

EXAMPLE = SOURCE.parent / "examples" / "torch" / "slow_rank.py"


def test_the_slow_rank_is_named() -> None:
    pytest.importorskip("torch")
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, str(EXAMPLE)], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    assert re.findall(r"^rank (\d) is slow$", done.stdout, re.MULTILINE) == ["1"], done.stdout
    assert "aten::linear" in done.stdout and "nputrace --rank-list 1 " in done.stdout
    folder = re.search(r"npuscope cluster (/tmp/npuscope-[^/]+)/", done.stdout)
    assert folder and not Path(folder[1]).exists()
