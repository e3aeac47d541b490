"""docs/profiler-metrics.md is what the profiler's tables say, and nothing of them is missing.

``UPDATE_DOCS=1 pytest tests/docs`` writes it anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from made_timeline import Maker
from profiler_metrics_page import CONTENTS, page

from npuscope.npu.chip import load_chip
from npuscope.profiler.counters import count
from npuscope.profiler.counters.counters import EVENTS
from npuscope.profiler.metrics import IDS, metric_tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "profiler-metrics.md"


def test_the_page_is_up_to_date() -> None:
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("chip", ["910B1", "950PR", "310P3"])
def test_every_file_and_column_is_on_it(chip: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    timeline = Maker("mix").timeline()
    tables = metric_tables(timeline, load_chip(chip), count(timeline, load_chip(chip)), detail=True)
    assert set(tables) == {"OpBasicInfo", *CONTENTS}
    for name, table in tables.items():
        section = text.partition(f"## {name}.csv\n")[2]
        section = re.split(r"\n## ", section)[0]
        assert section, name
        for column in table.columns:
            if column not in IDS:
                assert f"`{column}`" in section, (name, column)


@pytest.mark.parametrize("columns", ["A2", "A5", "310P"])
def test_every_event_is_on_it(columns: str) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("\n## Events\n")[2]
    for event in EVENTS[columns]:
        assert f"| {event.number} |" in text
        assert event.rule.replace("|", "\\|") in text
