"""A process that takes part in a checked run: its launches are simulated, and what they do goes to the run's folder."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from types import TracebackType

from npuscope.cli.compilation import tell_of_compilation
from npuscope.cli.keeping import Keeper
from npuscope.cli.plan import Plan, read_plan
from npuscope.cli.script import FailFast, user_error
from npuscope.cli.spool import SpoolWriter
from npuscope.cli.spooled_trace import SpooledTrace
from npuscope.frontends import install_all
from npuscope.frontends.launch import Session
from npuscope.frontends.uninitialised import Poison
from npuscope.npu.chip import load_chip
from npuscope.sanitizer.filters import LaunchSelector
from npuscope.sanitizer.suite import Suite
from npuscope.trace.recorder import Batch, Recorder
from npuscope.trace.schema import Launch


class SpoolingRecorder(Recorder):
    """Tells the run's folder that a launch begins, before anything of it is cut into batches."""

    spool: SpoolWriter
    keeper: Keeper | None = None

    def begin(self, launch: Launch) -> None:
        """Start recording `launch`."""
        super().begin(launch)
        self.spool.begun(launch)
        if self.keeper is not None:
            self.consumers[:] = self.keeper.consumers(launch)


class Hooked:
    """This process as a part of the run."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.recorder = SpoolingRecorder()
        self.session = Session(
            self.recorder, load_chip(plan.chip) if plan.chip else None, print_line=print,
            notice=lambda line: print(f"npuscope: {line}", file=sys.stderr),
            poison=Poison() if plan.keep is None else None, programs=plan.programs, timeout=plan.timeout,
            nan=plan.settings.nan,
        )
        self._open()
        install_all(self.session)
        if plan.checks != ():
            tell_of_compilation()
        if self.session.poison is not None:
            self.session.poison.__enter__()
        os.register_at_fork(after_in_child=self._open)
        atexit.register(self.close)

    def _open(self) -> None:
        """Start a spool of this process's own; what the parent of a fork found stays the parent's."""
        plan = self.plan
        self._finished = False
        self.recorder.launches = 0
        self.recorder.host = []
        suite = Suite(plan.checks, plan.settings, LaunchSelector(plan.launches))
        self.spool = self.recorder.spool = SpoolWriter(self.folder, suite)
        self.recorder.consumers[:] = [self.spool.take]
        if plan.save:
            self.recorder.consumers.insert(0, SpooledTrace(self.folder / f"{self.spool.name}.trace").write)
        if plan.keep is not None:
            self.recorder.keeper = Keeper(self.folder, plan.keep, self.session.ranges)
        elif plan.fail_fast:
            self.recorder.consumers.append(self._stop_at_first)

    def _stop_at_first(self, batch: Batch) -> None:
        if batch.last and any(self.plan.stops_at(finding) for finding in self.spool.suite.findings):
            (self.folder / "stop").touch()
            raise FailFast("the first error was found (--fail-fast)")

    def close(self) -> None:
        """Say the last word of this process."""
        if self.folder.exists():  # a process may outlive the run
            if not self._finished:
                self._finished = True
                self.recorder.finish()
            self.spool.close()


def join(folder: str) -> None:
    """Make this process, which the run's program started, a part of the run."""
    try:
        Hooked(Path(folder), read_plan(Path(folder)))
    except OSError:
        return  # the run is over
    sys.excepthook = _told


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A mistake that a person can mend is one line also when it ends a program that npuscope did not start itself."""
    found = user_error(error)
    if found is not None:
        print(f"npuscope: {found}", file=sys.stderr)
    elif kind is not FailFast:
        sys.__excepthook__(kind, error, trace)
