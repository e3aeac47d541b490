"""Correct programs under every check (sanitizer.md 6.5): no finding of any kind, values as numpy computes them.

Not expressible in pyasc: C09 (A5), C16 (Triton), C20 (a framework's pool).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scenarios.catalogue import CLEAN
from scenarios.model import Scenario
from scenarios.running import run, run_text, unexpected
from scenarios.witness import disagreements

pytest.importorskip("asc")

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "pyasc").glob("*.py"))


@pytest.mark.parametrize("row", CLEAN, ids=lambda row: row.id)
def test_pattern(row: Scenario) -> None:
    """Right and silent."""
    ran = run(row)
    assert ran.code == 0
    assert unexpected(row, ran) == []


@pytest.mark.parametrize("row", CLEAN, ids=lambda row: row.id)
def test_pattern_is_ordered(row: Scenario) -> None:
    """By the brute-force model too, so that silence is right."""
    assert disagreements(row, run(row)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    """The examples under every check."""
    ran = run_text(path.read_text())
    assert ran.code == 0
    assert [finding.kind for finding in ran.findings] == []
