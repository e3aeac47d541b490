"""Recall and false alarms over all rows of the catalogue: the share of expected findings that are made on their lines,
and the clean programs of which anything is said. The line is printed at the end of the test run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scenarios.catalogue import ALL
from scenarios.running import run, unexpected, unmatched

pytest.importorskip("asc")


def test_recall_and_false_alarms(record_property: Callable[[str, object], None]) -> None:
    """100 % and none."""
    wrong, right = [row for row in ALL if not row.clean], [row for row in ALL if row.clean]
    expected = sum(len(row.required) for row in wrong)
    missed = [f"{row.id}: {line}" for row in wrong for line in unmatched(row, run(row))]
    alarms = [f"{row.id}: {line}" for row in ALL for line in unexpected(row, run(row))]
    alarmed = {line.split(":")[0] for line in alarms}
    recall = 100 * (expected - len(missed)) / expected
    line = (
        f"scenarios: recall {recall:.0f} % of {expected} findings in {len(wrong)} programs, "
        f"false alarms in {len(alarmed)} of {len(ALL)} programs ({len(right)} of them clean)"
    )
    record_property("scoreboard", line)
    assert (missed, alarms) == ([], []), line


def test_ids_are_unique() -> None:
    """A row can be named."""
    names = [row.id for row in ALL]
    assert len(names) == len(set(names))
