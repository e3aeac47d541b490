"""Several checks over one trace: which ones, with which settings, and what each of them came to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from npuscope.errors import UserError
from npuscope.sanitizer.context import Context, Settings
from npuscope.sanitizer.dcci import DcciCheck
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.init import InitCheck
from npuscope.sanitizer.memory import MemoryCheck
from npuscope.sanitizer.programs.checks import PROGRAM_CHECKS
from npuscope.sanitizer.race import RaceCheck
from npuscope.sanitizer.registers import RegisterCheck
from npuscope.sanitizer.sync import SyncCheck
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Launch


class Check(Protocol):
    """Takes the batches of a trace in order and keeps what it finds."""

    name: str

    def check(self, batch: Batch) -> None:
        """Look at one batch."""

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""

    @property
    def limits(self) -> tuple[str, ...]:
        """What could not be looked at and why, a phrase each; empty when everything was."""


@runtime_checkable
class HostCheck(Protocol):
    """A check that also looks at what the host does with device memory."""

    def host(self, batch: Batch) -> None:
        """Look at the host's events before a batch, whether or not its launch is looked at."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check came to. `limits` says what it did not look at and why."""

    name: str
    findings: tuple[Finding, ...]
    limits: tuple[str, ...] = ()


CHECKS: dict[str, Callable[[Context], Check]] = {
    "memory": MemoryCheck,
    "race": RaceCheck,
    "init": InitCheck,
    "sync": lambda context: SyncCheck(context.settings.block),
    "registers": lambda context: RegisterCheck(context.settings.trace_masks, context.settings.block),
    "dcci": lambda context: DcciCheck(context.settings.dcci),
}
"""The checks by name, in the order in which reports show them."""

Selector = Callable[[Launch], bool]


class Suite:
    """A consumer of batches that hands them to every chosen check.

    `selects` says which launches are looked at. `launches` and `instructions` count what was looked at, `skipped` the
    launches that were not; `stopped` names the kernels that an error ended.
    """

    def __init__(
        self, names: Iterable[str] | None = None, settings: Settings | None = None, selects: Selector | None = None
    ) -> None:
        chosen = list(CHECKS if names is None else names)
        unknown = [name for name in chosen if name not in CHECKS]
        if unknown:
            raise UserError(f"no check is called {unknown[0]}; there are {', '.join(CHECKS)}")
        self._context = Context(settings or Settings(), chosen)
        self.checks: Sequence[Check] = [CHECKS[name](self._context) for name in CHECKS if name in chosen]
        self._program_checks = {name: PROGRAM_CHECKS[name](self._context) for name in chosen if name in PROGRAM_CHECKS}
        self._host_checks = [check for check in self.checks if isinstance(check, HostCheck)]
        self.launches = 0
        self.instructions = 0
        self.skipped = 0
        self.stopped: list[str] = []
        self._selects = selects or (lambda launch: True)
        self._chosen = True

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        for host_check in self._host_checks:
            host_check.host(batch)
        if batch.closing:
            return
        if batch.first == 0:
            self._chosen = self._selects(batch.launch)
        if not self._chosen:
            self.skipped += batch.last
            return
        self.instructions += batch.instruction.shape[1]
        self.launches += batch.last
        if batch.launch.of_programs:
            for program_check in self._program_checks.values():
                program_check.check(batch)
        else:
            self._check_cores(batch)
        if batch.last:
            errors = [fault.facts["error"] for fault in batch.faults if fault.code == "stopped"]
            self.stopped.extend(f"{batch.launch.kernel} stopped early, {error}" for error in errors)
            if any(fault.code == "deadlock" for fault in batch.faults):
                self.stopped.append(f"{batch.launch.kernel} can never finish")

    def _check_cores(self, batch: Batch) -> None:
        engine = self._context.hazards if self._context.judges_order else None
        if engine is not None:
            engine.check(batch)
        for check in self.checks:
            check.check(batch)
        if batch.last and engine is not None:
            engine.release()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What each check came to so far."""
        return tuple(self._outcome(check) for check in self.checks)

    def _outcome(self, check: Check) -> Outcome:
        found, limits = check.findings, check.limits
        twin = self._program_checks.get(check.name)
        if twin is not None:
            found, limits = found + twin.findings, limits + twin.limits
        return Outcome(check.name, tuple(replace(item, check=check.name) for item in found), limits)

    @property
    def findings(self) -> list[Finding]:
        """Everything found so far, check by check."""
        return [finding for outcome in self.outcomes for finding in outcome.findings]
