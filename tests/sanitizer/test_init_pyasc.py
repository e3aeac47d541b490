"""The rows on uninitialised reads of the scenario catalogue (sanitizer.md 6.2), as pyasc kernels.

Not expressible: I06 (a private stack array), I09 (SIMT).
"""

from __future__ import annotations

import pytest
from scenarios.catalogue import INIT
from scenarios.model import Scenario
from scenarios.running import run, unexpected, unmatched
from scenarios.witness import disagreements

pytest.importorskip("asc")


@pytest.mark.parametrize("row", INIT, ids=lambda row: row.id)
def test_row(row: Scenario) -> None:
    """Every undefined use is found on its line, nothing else is; values of clean programs are numpy's."""
    ran = run(row)
    assert ran.code == 0
    assert unmatched(row, ran) == []
    assert unexpected(row, ran) == []


@pytest.mark.parametrize("row", INIT, ids=lambda row: row.id)
def test_no_row_has_a_race(row: Scenario) -> None:
    """What these programs get wrong is not the order."""
    assert disagreements(row, run(row)) == []
