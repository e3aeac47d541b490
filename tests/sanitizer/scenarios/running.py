"""Runs scenarios under every check, once each: the tests of the rows and the scoreboard look at the same run."""

from __future__ import annotations

import linecache
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from npuscope.cli.session import run_in_session
from npuscope.npu.memory import LazyMemories, Memory
from npuscope.sanitizer.findings import Access, Finding
from npuscope.sanitizer.suite import Settings, Suite
from npuscope.trace.names import _assigned
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Space
from scenarios.model import Expect, Scenario, program

PROLOGUE = """\
import numpy as np
import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
config.set_platform(config.Backend.Model)
"""


RESULTS: dict[str, bytes] = {}
"""Where a program under `run_poisoned` leaves its arrays."""


@dataclass(frozen=True)
class Ran:
    """What a program did: its exit code (its own assertions hold when it is 0), findings, the trace, its lines."""

    code: int
    findings: tuple[Finding, ...]
    batches: tuple[Batch, ...]
    lines: tuple[str, ...]

    def line(self, access: Access | None, finding: Finding) -> str:
        """The source line of one side of a finding."""
        frames = access.frames if access is not None else finding.frames
        return self.lines[frames[0].line - 1].strip() if frames else ""


def run_poisoned(text: str, seed: int) -> dict[str, bytes]:
    """The host's arrays when a program has made its last launch, with on-chip memory holding random bytes at first:
    what differs between two seeds came from memory that nothing had written."""
    capture = "RESULTS.update({name: one.tobytes() for name, one in list(globals().items()) if isinstance(one, np.ndarray)})"
    lines = text.splitlines()
    last = max(at for at, line in enumerate(lines) if re.match(r"\w+\[.*\]\(", line))
    whole = [f"import {__name__} as running", "RESULTS = running.RESULTS", *lines[: last + 1], capture]
    rng = np.random.default_rng(seed)

    def filled(space: Space, size: int) -> Memory:
        return Memory(space, 0, rng.integers(0, 256, size, np.uint8))

    RESULTS.clear()
    with patch.object(LazyMemories.__init__, "__defaults__", (filled,)):
        run_text("\n".join(whole) + "\n", checks=())
    return dict(RESULTS)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="scenarios-")  # goes when the interpreter does


def run_text(text: str, chip: str | None = None, checks: Sequence[str] | None = None) -> Ran:
    """Run plain pyasc text under the named checks (None: all of them) in this process."""
    script = Path(_folder().name) / "kernel.py"
    script.write_text(PROLOGUE + text)
    linecache.checkcache(str(script))
    _assigned.cache_clear()
    suite = Suite(checks, Settings())
    batches: list[Batch] = []
    with patch.object(sys, "argv", list(sys.argv)), patch.object(sys, "path", list(sys.path)):
        code, _ = run_in_session((suite.check, batches.append), chip, str(script), (), False)
    return Ran(code, tuple(suite.findings), tuple(batches), tuple((PROLOGUE + text).splitlines()))


@cache
def _run(text: str, chip: str | None) -> Ran:
    return run_text(program(text), chip)


def run(row: Scenario) -> Ran:
    """Run a scenario; the same text is run once."""
    return _run(row.text, row.chip)


# -- comparing -------------------------------------------------------------------------------------------------------


def unmatched(row: Scenario, ran: Ran) -> list[str]:
    """What was expected and not found, in words."""
    found = [finding for finding in ran.findings if finding.check == row.check]
    return [f"missing {expect}" for expect in row.required if not any(_same(expect, one, ran) for one in found)]


def unexpected(row: Scenario, ran: Ran) -> list[str]:
    """What was found and not expected, in words. A row with expectations answers for its own check's findings and for
    errors of the others; a clean one for everything."""
    wrong = []
    for finding in ran.findings:
        own = finding.check == row.check
        if own and any(_same(expect, finding, ran) for expect in row.expect):
            continue
        if not own and not row.clean and (finding.kind in row.also or finding.severity.word != "error"):
            continue
        lines = [ran.line(side, finding) for side in (finding.access, finding.other)]
        pipes = [side.pipe for side in (finding.access, finding.other) if side is not None]
        place = (finding.owner.name, finding.owner.space) if finding.owner is not None else ()
        what = f"{finding.kind} {finding.severity.word} edge {finding.edge!r} pipes {pipes} {place} {finding.cores}"
        wrong.append(f"{what} {lines}: {finding.summary}")
    return wrong


def _same(expect: Expect, finding: Finding, ran: Ran) -> bool:
    if (finding.kind, finding.severity.word) != (expect.kind, expect.severity):
        return False
    return _same_lines(expect, finding, ran) and _same_place(expect, finding)


def _same_lines(expect: Expect, finding: Finding, ran: Ran) -> bool:
    sides = ((finding.access, expect.later), (finding.other, expect.earlier))
    hits = [marked(ran.line(side, finding), mark) for side, mark in sides if mark and side is not None]
    if expect.either:
        marks = [mark for _, mark in sides if mark]
        return any(marked(ran.line(finding.access, finding), mark) for mark in marks)
    return all(hits) and (finding.other is not None or expect.earlier == "" or expect.kind == "uninitialised-read")


def marked(line: str, mark: str) -> bool:
    """Whether a source line carries a mark in its comment."""
    _, _, comment = line.partition("#")
    return mark in comment.split()


def _same_place(expect: Expect, finding: Finding) -> bool:
    for side, pipe in zip((finding.access, finding.other), expect.pipes, strict=True):
        if pipe and (side is None or side.pipe != pipe):
            return False
    owner = finding.owner
    if expect.owner and (owner is None or owner.name != expect.owner):
        return False
    if expect.space and (owner is None or owner.space != expect.space):
        return False
    if expect.edge and finding.edge != expect.edge:
        return False
    if expect.size and finding.size != expect.size:
        return False
    return not expect.cores or finding.cores == expect.cores
