"""docs/timing.md."""

from __future__ import annotations
from timing_cases.results import Result, Summary
def text(results: list[Result], found: list[Summary]) -> str:
    return ""
