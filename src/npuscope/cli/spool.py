"""What the processes of a run leave for the command that started it, written so that a kill loses nothing that is done.

Each process has a name that sorts by its start. ``NAME.log`` grows by one pickled entry a launch, ``NAME.found`` is
replaced whenever there is something new to say, ``NAME.trace`` grows by one pickled batch (see `spooled_trace`).
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from npuscope.errors import UserError
from npuscope.sanitizer.records import LaunchLog, LaunchRecord
from npuscope.sanitizer.suite import Outcome, Suite
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Launch

SECONDS_BETWEEN = 0.5
"""How old what was found in a launch that still runs may be on disk."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one process has to say: what its checks came to, and the mistake that ended it, if one did."""

    outcomes: tuple[Outcome, ...] = ()
    trouble: UserError | None = None


@dataclass(slots=True)
class Part:
    """A process of the run as the command reads it."""

    name: str
    found: Found = field(default_factory=Found)
    records: list[LaunchRecord] = field(default_factory=list)
    unfinished: str = ""  # the kernel during which the process went away


class SpoolWriter:
    """The consumer of one process's batches: checks them and writes what was found."""

    def __init__(self, folder: Path, suite: Suite) -> None:
        self.suite = suite
        self.trouble: UserError | None = None
        self.name = f"{time.time_ns():020d}-{os.getpid()}"
        self._folder = folder
        self._launches = LaunchLog()
        self._log: IO[bytes] | None = None  # opened by the first launch
        self._written = -SECONDS_BETWEEN
        self._said = 0

    def begun(self, launch: Launch) -> None:
        """A launch starts."""
        self._append(launch.kernel)

    def take(self, batch: Batch) -> None:
        """Check one batch; what a finished launch came to is on disk when this returns."""
        before = self.suite.skipped
        self.suite.check(batch)
        record = self._launches.take(batch, self.suite.skipped == before)
        if record is not None:
            self._append(record)
        if record is not None or time.monotonic() - self._written > SECONDS_BETWEEN:
            self._write_news()

    def close(self) -> None:
        """Write what there is to say; may be called again."""
        if self._log is not None or self.trouble is not None or self.suite.findings:
            self._write(self.suite.outcomes)

    def _append(self, entry: Any) -> None:
        with self._telling():
            if self._log is None:
                self._log = open(self._folder / f"{self.name}.log", "ab", buffering=0)  # noqa: SIM115 - lives with the run
            self._log.write(pickle.dumps(entry))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """A full disk ends the script in words. That the run's folder is gone with the run does not matter any more."""
        try:
            yield
        except OSError as error:
            if self._folder.exists():
                raise UserError(f"cannot write to the temporary folder {self._folder}: {error.strerror}") from None

    def _write_news(self) -> None:
        outcomes = self.suite.outcomes
        said = sum(finding.count for outcome in outcomes for finding in outcome.findings)
        if said != self._said or self._written < 0:
            self._said = said
            self._write(outcomes)

    def _write(self, outcomes: tuple[Outcome, ...]) -> None:
        part = self._folder / f".{self.name}"
        with self._telling():
            part.write_bytes(pickle.dumps(Found(outcomes, self.trouble)))
            os.replace(part, self._folder / f"{self.name}.found")
        self._written = time.monotonic()


def read_parts(folder: Path) -> list[Part]:
    """Every process that took part, in the order in which they started."""
    return [_read_part(folder, name) for name in sorted({path.stem for path in folder.glob("*-*.*")})]


def _read_part(folder: Path, name: str) -> Part:
    part = Part(name)
    found, log = folder / f"{name}.found", folder / f"{name}.log"
    if found.exists():
        part.found = pickle.loads(found.read_bytes())
    for entry in entries(log) if log.exists() else ():
        if isinstance(entry, LaunchRecord):
            part.records.append(entry)
            part.unfinished = ""
        else:
            part.unfinished = entry
    return part


def entries(path: Path) -> Iterator[Any]:
    """The pickled values of a file, up to where a process that was killed left off."""
    with open(path, "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                return
