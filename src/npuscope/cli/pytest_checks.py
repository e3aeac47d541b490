"""What `pytest --npuscope` does: a suite of checks around each phase of each test, and totals at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from npuscope.cli.reporting import read_rules
from npuscope.errors import UserError
from npuscope.frontends import install_all
from npuscope.frontends.launch import Session
from npuscope.npu.chip import load_chip
from npuscope.report.document import number
from npuscope.report.text import findings_text
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.judge import Screen, is_quiet_advisory, judge
from npuscope.sanitizer.suite import Suite
from npuscope.sanitizer.suppressions import Rules, allowed_in_source
from npuscope.trace.recorder import Batch, Recorder

TOTALS = "npuscope"
"""The key under which a worker of pytest-xdist hands its totals to the controller."""


class Checks:
    """The plugin at work in one pytest process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        option = config.getoption
        try:
            names = option("--npuscope-checks")
            self._names = tuple(word.strip() for word in names.split(",")) if names else None
            self._suite = Suite(self._names)
            self._rules = Rules(read_rules(tuple(Path(file) for file in option("--npuscope-suppressions"))))
            chip = option("--npuscope-chip")
            session = Session(
                Recorder(consumers=[self._take]), load_chip(chip) if chip else None, print_line=print,
                notice=lambda line: print(f"npuscope: {line}", file=sys.stderr),
            )
        except UserError as error:
            raise pytest.UsageError(f"npuscope: {error}") from None
        self._strict = bool(option("--npuscope-strict"))
        self.totals: Counter[str] = Counter()
        install_all(session)

    def _take(self, batch: Batch) -> None:
        self._suite.check(batch)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Kernels that fixtures launch."""
        return (yield from self._phase(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Kernels of the test itself."""
        return (yield from self._phase(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Kernels that fixtures launch on their way out."""
        return (yield from self._phase(item, "teardown"))

    def _phase(self, item: pytest.Item, name: str) -> Generator[None, Any, Any]:
        """Check what was launched since the last phase. One that fails by itself shows the findings beside that."""
        try:
            result = yield
        except BaseException:
            findings = self._judged(item)
            if findings:
                item.add_report_section(name, "npuscope", findings_text(findings))
            raise
        findings = self._judged(item)
        if findings:
            pytest.fail(f"npuscope: {_counted(findings)}\n\n{findings_text(findings)}", pytrace=False)
        return result

    def _judged(self, item: pytest.Item) -> list[Finding]:
        """What the phase's kernels did that is not allowed; everything goes into the totals."""
        suite, allowed = self._suite, allowances(item)
        self._suite = Suite(self._names)
        screens = [
            Screen("marker", lambda finding: any(fnmatchcase(finding.kind, kind) for kind in allowed)),
            Screen("rules", self._rules),
            Screen("comments", allowed_in_source),
        ]
        if not self._strict:
            screens.append(Screen("advisories", is_quiet_advisory))
        judged = judge(suite.outcomes, screens)
        findings = [finding for outcome in judged.outcomes for finding in outcome.findings]
        self.totals.update(
            launches=suite.launches, instructions=suite.instructions, stopped=len(suite.stopped),
            suppressed=sum(sum(reasons.values()) for reasons in judged.suppressed.values()),
        )
        self.totals.update(finding.severity.word for finding in findings)
        return findings

    def pytest_sessionfinish(self) -> None:
        """A worker hands its totals over."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[TOTALS] = dict(self.totals)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The controller adds up what its workers had."""
        self.totals.update(getattr(node, "workeroutput", {}).get(TOTALS, {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The last line of the run."""
        terminalreporter.write_line(summary(self.totals, [check.name for check in Suite(self._names).checks]))


def allowances(item: pytest.Item) -> list[str]:
    """The classes that the test's markers allow."""
    found: list[str] = []
    for marker in item.iter_markers("npuscope"):
        given = marker.kwargs.get("allow", marker.args)
        found += [given] if isinstance(given, str) else [str(kind) for kind in given]
    return found


def summary(totals: Counter[str], checks: Sequence[str]) -> str:
    """What all tests together came to."""
    if not totals["launches"]:
        return "npuscope: nothing checked, no test launched a kernel"
    found = ", ".join(
        [number(totals["error"], "error"), number(totals["warning"], "warning"), f"{totals['suppressed']} suppressed"]
    )
    advisories = f", {number(totals['advisory'], 'advisory', 'advisories')}" if totals["advisory"] else ""
    stopped = f"; {number(totals['stopped'], 'launch', 'launches')} stopped early" if totals["stopped"] else ""
    looked = f"{number(totals['launches'], 'launch', 'launches')}, {number(totals['instructions'], 'instruction')}"
    return f"npuscope: {found}{advisories} ({looked} checked: {', '.join(checks)}{stopped})"


def _counted(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    words = {Severity.ERROR: ("error", "errors"), Severity.WARNING: ("warning", "warnings"),
             Severity.ADVISORY: ("advisory", "advisories")}
    return ", ".join(number(counts[severity], *words[severity]) for severity in words if counts[severity])
