"""Every example of docs/checks.md does what the page says: the report is the one that is printed, the cure is clean.

A ```` ```python ```` block is a program, the block ``$ npuscope check ... NAME.py`` after it the report, a
```` ```diff ```` block after that the cure. ``UPDATE_DOCS=1 pytest tests/docs`` writes the reports anew; which classes
a section is about, and how severe they are, stays with the page.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from page_examples import cured

from npuscope.cli.session import run_in_session
from npuscope.report.kinds import KINDS
from npuscope.report.text import findings_text
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.judge import is_quiet_advisory
from npuscope.sanitizer.suite import Settings, Suite
from npuscope.trace.names import _assigned

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checks.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\$ npuscope check (?:(.*) )?(\w+)\.py\n")
KIND = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")
OF_TILES = frozenset(
    ("integer-overflow", "division-by-zero", "device-assert", "false-hint", "masked-outside", "nan-origin", "race-lanes",
     "lost-result", "unwritten-output", "outside-block")
)  # fmt: skip
"""Classes that only Triton kernels have; docs/triton.md has them."""


@dataclass(frozen=True)
class Example:
    """A program of the page: its section's heading, its name, the options of the command, the report as the page has
    it and where that stands, and the lines that cure it."""

    heading: str
    name: str
    program: str
    options: tuple[str, ...]
    report: str
    span: tuple[int, int]
    cure: str


def blocks(page: str) -> Iterator[tuple[str, str, str, tuple[int, int]]]:
    """(heading, language, text, where the text stands) of each fenced block."""
    for match in BLOCK.finditer(page):
        heading = re.findall(r"^#+ (.*)$", BLOCK.sub("", page[: match.start()]), re.MULTILINE)[-1]
        yield heading, match[1], match[2], match.span(2)


def prelude(page: str) -> str:
    """The first program of the page: what the others import."""
    return next(text for _, language, text, _ in blocks(page) if language == "python")


def examples(page: str) -> list[Example]:
    """All examples of the page, in order."""
    everything = list(blocks(page))
    found = []
    for (_, language, program, _), (heading, _, text, span), (_, then, cure, _) in zip(
        everything, everything[1:], [*everything[2:], ("", "", "", (0, 0))], strict=False
    ):
        command = COMMAND.match(text)
        if language == "python" and command is not None:
            options = tuple((command[1] or "").split())
            place = (span[0] + command.end(), span[1])
            found.append(
                Example(heading, command[2], program, options, text[command.end() :], place, cure if then == "diff" else "")
            )
    return found


EXAMPLES = examples(PAGE.read_text())


def settings(options: tuple[str, ...]) -> tuple[list[str] | None, Settings, str | None]:
    """What the options of `npuscope check` mean: checks, settings, chip."""
    words = dict(zip(options, [*options[1:], ""], strict=False))
    known = {"--strict", "--leak-check", "--check-unused-memory", "--trace-masks", "--dcci", "--check", "--chip"}
    assert all(word in known for word in options if word.startswith("--"))
    chosen = Settings(
        dcci=words.get("--dcci", "exact"), trace_masks="--trace-masks" in words, leaks="--leak-check" in words,
        unused="--check-unused-memory" in words,
    )
    return [words["--check"]] if "--check" in words else None, chosen, words.get("--chip")


def run(name: str, program: str, options: tuple[str, ...]) -> tuple[int, list[Finding]]:
    """Run a program in the current folder under the checks; its exit code and what `npuscope check` would print."""
    script = Path(f"{name}.py")
    script.write_text(program)
    linecache.checkcache()
    _assigned.cache_clear()
    checks, chosen, chip = settings(options)
    suite = Suite(checks, chosen)
    code, _ = run_in_session((suite.check,), chip, str(script), (), False)
    return code, [item for item in suite.findings if "--strict" in options or not is_quiet_advisory(item)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with the prelude; what running a script changes is put back."""
    pytest.importorskip("asc")
    (tmp_path / "prelude.py").write_text(prelude(PAGE.read_text()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("prelude", None)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_report(example: Example) -> None:
    """The classes of the section's heading are found and no other; the report is the page's."""
    _, findings = run(example.name, example.program, example.options)
    text = findings_text(findings) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        page = PAGE.read_text()
        (start, end), = [other.span for other in examples(page) if other.name == example.name]
        PAGE.write_text(page[:start] + text + page[end:])
    else:
        assert text == example.report
    assert {finding.kind for finding in findings} <= set(KIND.findall(example.heading))
    assert findings


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.cure], ids=lambda example: example.name)
def test_cure(example: Example) -> None:
    """The cured program ends with 0 and no check finds anything in it, advisories included."""
    program = cured(example.program, example.cure)
    assert program != example.program
    code, findings = run(f"{example.name}_cured", program, ("--strict", *example.options))
    assert (code, [finding.kind for finding in findings]) == (0, [])


def test_every_class_is_in_a_table_and_has_an_example() -> None:
    """With the severity that its examples' reports begin with."""
    page = PAGE.read_text()
    every = examples(page)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    severities = {kind: row[1] for row in rows for kind in KIND.findall(row[0])}
    assert set(severities) == set(KINDS) - OF_TILES
    heads = [re.findall(r"^(error|warning|advisory): .*\[([a-z-]+)\]$", item.report, re.MULTILINE) for item in every]
    shown = {kind: severity for head in heads for severity, kind in head}
    assert set(shown) == set(KINDS) - OF_TILES
    assert {kind: severity for kind, severity in severities.items() if shown[kind] not in severity} == {}
    assert [item.name for item in every if not item.cure] == ["non_default_mask"]  # a list, no fault
