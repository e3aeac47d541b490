"""What `pytest --npuscope` does: a suite of checks around each phase of each test, and totals at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuscope.cli.reporting import read_rules
from npuscope.errors import UserError
from npuscope.frontends import install_all
from npuscope.frontends.launch import Session
from npuscope.frontends.uninitialised import Poison
from npuscope.npu.chip import load_chip
from npuscope.report.document import number
from npuscope.report.text import findings_text
from npuscope.sanitizer.findings import Finding, Severity
from npuscope.sanitizer.judge import ADVISORIES, Screen, is_quiet_advisory, judge
from npuscope.sanitizer.merge import sameness
from npuscope.sanitizer.suite import Suite
from npuscope.sanitizer.suppressions import Rules, allowed_in_source
from npuscope.trace.recorder import Batch, Recorder
from npuscope.trace.schema import NO_LAUNCH, HostEvent, Launch

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
            self._recorder = Recorder(consumers=[self._take])
            session = Session(
                self._recorder, load_chip(chip) if chip else None, print_line=print,
                notice=lambda line: print(f"npuscope: {line}", file=sys.stderr), poison=Poison(),
            )
        except UserError as error:
            raise pytest.UsageError(f"npuscope: {error}") from None
        self._strict = bool(option("--npuscope-strict"))
        self.totals: Counter[str] = Counter()
        self._host: list[HostEvent] = []
        self._known: Counter[str] = Counter()  # how often the suite had found what, when it was made
        install_all(session)
        self._poison = session.poison
        if self._poison is not None:
            self._poison.__enter__()

    def _take(self, batch: Batch) -> None:
        self._host.extend(batch.host)
        self._suite.check(batch)

    def _fresh_suite(self) -> None:
        """A suite for the next phase, which knows the device memory that the host has so far."""
        self._suite = Suite(self._names)
        if self._host:
            nothing = np.empty((0, 0), np.int64)
            launch = Launch(NO_LAUNCH, "", "", (), (), {}, {})
            self._suite.check(Batch(launch, 0, nothing, nothing, [], [], self._recorder.sites, [], False, self._host))
        self._known = Counter({sameness(finding): finding.count for finding in self._suite.findings})

    def pytest_unconfigure(self) -> None:
        """Arrays are left alone from here on."""
        if self._poison is not None:
            self._poison.__exit__(None, None, None)

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
        self._recorder.finish()  # host events that no launch has brought along
        outcomes = [replace(item, findings=self._new(item.findings)) for item in suite.outcomes]
        self._fresh_suite()
        screens = [
            Screen("marker", lambda finding: any(fnmatchcase(finding.kind, kind) for kind in allowed)),
            Screen("rules", self._rules),
            Screen("comments", allowed_in_source),
        ]
        if not self._strict:
            screens.append(Screen(ADVISORIES, is_quiet_advisory))
        judged = judge(outcomes, screens)
        findings = [finding for outcome in judged.outcomes for finding in outcome.findings]
        self.totals.update(
            launches=suite.launches, instructions=suite.instructions, stopped=len(suite.stopped),
            suppressed=sum(
                count for reasons in judged.suppressed.values() for reason, count in reasons.items()
                if reason != ADVISORIES
            ),
        )
        self.totals.update(finding.severity.word for finding in findings)
        return findings

    def _new(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Findings that the suite did not have from the start."""
        return tuple(finding for finding in findings if finding.count > self._known[sameness(finding)])

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
