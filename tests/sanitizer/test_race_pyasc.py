"""The race rows of the scenario catalogue (sanitizer.md 6.3), as pyasc kernels with clean twins.

Not expressible in pyasc on the chips that it compiles for: R08, R23, R26 (A5), R27 (two devices), R28 (SIMT); why is in
the modules of the rows. Each expectation is held against the sanitizer and against an independent model of the order.
"""

from __future__ import annotations

import pytest
from scenarios.catalogue import RACE
from scenarios.model import Scenario
from scenarios.running import run, unexpected, unmatched
from scenarios.witness import disagreements

pytest.importorskip("asc")


@pytest.mark.parametrize("row", RACE, ids=lambda row: row.id)
def test_row(row: Scenario) -> None:
    """Everything expected is found on its lines, nothing else is; the values are numpy's."""
    ran = run(row)
    assert ran.code == 0
    assert unmatched(row, ran) == []
    assert unexpected(row, ran) == []


@pytest.mark.parametrize("row", RACE, ids=lambda row: row.id)
def test_expectation_follows_from_the_order(row: Scenario) -> None:
    """The expected races of a row are those of the brute-force model."""
    assert disagreements(row, run(row)) == []


@pytest.mark.parametrize("row", [row for row in RACE if not row.clean], ids=lambda row: row.id)
def test_both_sides_are_described(row: Scenario) -> None:
    """A race has both accesses with their frames, the buffer, the launch's line and something to do about it."""
    races = [finding for finding in run(row).findings if finding.check == "race"]
    assert races
    for finding in races:
        assert finding.access is not None and finding.other is not None and finding.owner is not None
        assert finding.access.frames and finding.other.frames
        assert finding.access.serial > finding.other.serial >= 0
        assert finding.advice and finding.summary
        assert finding.launch_frame is not None
