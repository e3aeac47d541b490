"""Launches Triton kernels in this process under all checks. Kernels lie in files of their own, as Triton wants them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npuscope.cli.session import load_chip
from npuscope.frontends.launch import Session
from npuscope.frontends.uninitialised import Poison
from npuscope.report.text import findings_text
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.suite import Outcome, Settings, Suite
from npuscope.trace.recorder import Batch

HERE = Path(__file__).parent


@dataclass
class Found:
    """What a function's launches came to."""

    findings: list[Finding]
    outcomes: tuple[Outcome, ...]
    batches: list[Batch]
    error: BaseException | None

    @property
    def kinds(self) -> list[str]:
        """Classes of the findings, sorted."""
        return sorted(finding.kind for finding in self.findings)

    @property
    def limits(self) -> list[str]:
        """What was not looked at."""
        return [limit for outcome in self.outcomes for limit in outcome.limits]

    @property
    def text(self) -> str:
        """The report."""
        return findings_text(self.findings)

    def only(self, kind: str) -> Finding:
        """The one finding, which is of this class."""
        assert self.kinds == [kind], self.text
        return self.findings[0]


@dataclass
class Bench:
    """Triton as this process has it, and a session whose launches go to a fresh suite each time."""

    session: Session = field(default_factory=lambda: Session(poison=Poison()))
    _driver: Any = None

    def install(self) -> None:
        """Make Triton's launches this session's, also when somebody else had them meanwhile."""
        import torch  # noqa: F401 - the hooks of torch wait for no one here
        from triton.backends import backends
        from triton.runtime.driver import driver

        if self._driver is None:
            from npuscope.frontends import triton

            triton.install(self.session)
            self._driver = driver.active, dict(backends)
        active, known = self._driver
        if driver.active is not active:
            backends.clear()
            backends.update(known)
            driver.set_active(active)

    def kernels(self, name: str) -> Any:
        """A module of kernels beside this file."""
        self.install()
        if str(HERE) not in sys.path:
            sys.path.insert(0, str(HERE))
        return importlib.import_module(name)

    def run(
        self, function: Callable[[], Any], settings: Settings | None = None, chip: str | None = None, fails: bool = False
    ) -> Found:
        """Call the function and check its launches; with `fails`, its exception belongs to the result."""
        session, settings = self.session, settings or Settings()
        suite = Suite(None, settings)
        batches: list[Batch] = []
        session.recorder.consumers[:] = [suite.check, batches.append]
        session.chip = load_chip(chip) if chip else None
        session.nan, session.nan_seen = settings.nan, False
        session.recorder.launches = 0
        error: BaseException | None = None
        assert session.poison is not None
        with session.poison:
            try:
                function()
            except RuntimeError as raised:
                if not fails:
                    raise
                error = raised
        session.recorder.finish()
        session.recorder.consumers.clear()
        return Found(suite.findings, suite.outcomes, batches, error)


_bench: list[Bench] = []


def the_bench() -> Bench:
    """The process's only bench, ready for launches."""
    if not _bench:
        _bench.append(Bench())
    _bench[0].install()
    return _bench[0]
