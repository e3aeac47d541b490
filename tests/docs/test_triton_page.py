"""Every example of docs/triton.md does what the page says: the report is the one that is printed, the cure is clean.

A ```` ```python ```` block is a program (after the lines that all of them begin with), the block ``$ npuscope check ...
NAME.py`` after it the report, a ```` ```diff ```` block after that the cure. Addresses differ from run to run.
``UPDATE_DOCS=1 pytest tests/docs`` writes the reports anew.
"""

from __future__ import annotations

import linecache
import os
import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from page_examples import cured
from programs.tile_bench import the_bench

from npuscope.report.kinds import KINDS
from npuscope.report.text import findings_text
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.judge import is_quiet_advisory
from npuscope.sanitizer.programs.faults import FORMS
from npuscope.sanitizer.suite import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "triton.md"
EXAMPLE = re.compile(
    r"^```python\n(?P<program>(?:(?!^```).*\n)*)^```\n\n"
    r"^```\n\$ npuscope check (?P<options>(?:--\S+ (?:Ascend\S+ )?)*)(?P<name>\w+)\.py\n(?P<report>(?:(?!^```).*\n)*)^```\n\n"
    r"^Cure: .*\n\n^```diff\n(?P<cure>(?:(?!^```).*\n)*)^```\n",
    re.MULTILINE,
)
KIND = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Example:
    """A program of the page with its section's heading, the report and where that stands, and the cure."""

    heading: str
    name: str
    program: str
    options: tuple[str, ...]
    report: str
    span: tuple[int, int]
    cure: str


def examples(page: str) -> list[Example]:
    """All examples of the page, in order."""
    found = []
    for match in EXAMPLE.finditer(page):
        heading = re.findall(r"^#### (.*)$", page[: match.start()], re.MULTILINE)[-1]
        options = tuple(match["options"].split())
        found.append(
            Example(heading, match["name"], match["program"], options, match["report"], match.span("report"), match["cure"])
        )
    return found


TEXT = PAGE.read_text()
EXAMPLES = examples(TEXT)
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for the programs."""
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    yield


def run(example: Example, program: str, name: str, options: tuple[str, ...]) -> list[Finding]:
    """What `npuscope check` prints of a program."""
    script = Path(f"{name}.py")
    script.write_text(f"{HEAD}\n\n{program}")
    linecache.checkcache()
    words = dict(zip(options, [*options[1:], ""], strict=False))
    assert {word for word in options if word.startswith("--")} <= {"--strict", "--chip", "--nan", "--launch-log"}
    bench = the_bench()
    settings = Settings(nan="--nan" in words, launch_log="--launch-log" in words)
    found = bench.run(lambda: runpy.run_path(str(script), run_name="__main__"), settings, words.get("--chip"))
    return [item for item in found.findings if "--strict" in words or not is_quiet_advisory(item)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_report(example: Example) -> None:
    """The classes of the heading are found and no other; the report is the page's."""
    findings = run(example, example.program, example.name, example.options)
    text = ADDRESS.sub("0x...", findings_text(findings)) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        page = PAGE.read_text()
        (start, end), = [other.span for other in examples(page) if other.name == example.name]
        PAGE.write_text(page[:start] + text + page[end:])
    else:
        assert text == example.report
    assert findings
    assert {finding.kind for finding in findings} <= set(KIND.findall(example.heading))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_cure(example: Example) -> None:
    """No check finds anything in the cured program, advisories included."""
    program = cured(example.program, example.cure)
    findings = run(example, program, f"{example.name}_cured", tuple(dict.fromkeys(("--strict", *example.options))))
    assert [finding.kind for finding in findings] == []


def test_every_class_has_a_row_and_an_example() -> None:
    """With the severity that its examples' reports begin with; together with docs/checks.md nothing is left out."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TEXT.splitlines() if line.startswith("| `")]
    severities = {kind: row[1] for row in rows for kind in KIND.findall(row[0])}
    named = {kind for example in EXAMPLES for kind in KIND.findall(example.heading)}
    assert named == set(severities) - {"outside-block"}  # not with every Triton: tests of the corpus have it
    for example in EXAMPLES:
        for severity, kind in re.findall(r"^(error|warning|advisory): .*\[([a-z-]+)\]$", example.report, re.MULTILINE):
            assert severity in severities[kind]
    others = [line for line in (DOCS / "checks.md").read_text().splitlines() if line.startswith("| `")]
    elsewhere = {kind for line in others for kind in KIND.findall(line.split("|")[1])}
    assert set(KINDS) == set(severities) | (elsewhere & set(KINDS))
    assert len(FORMS) == 9  # a new fault of the tile machine needs a row and an example


def test_the_report_at_the_top() -> None:
    """The report that explains what a report holds is that of an example."""
    page = PAGE.read_text()
    shown = re.search(r"the launch with its grid and constants:\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    report = next(example.report for example in examples(page) if example.name == "past_the_end")
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page[: shown.start(1)] + report + page[shown.end(1) :])
    else:
        assert shown[1] == report
