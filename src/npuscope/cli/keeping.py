"""Keeps the launches that are wanted, each in a file of its own, however many an application has.

All processes of a run choose together: a file with two numbers, how many launches there were and how many are kept, is
read and written under a lock. ``launches`` grows by one line of JSON a launch, ``NUMBER.launch`` is the trace of a kept
one. ``closed`` is there when no further one is to be kept, ``stop`` when the application is to end.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from npuscope.cli.launched import LIST, Launched, cores_of, launch_file
from npuscope.cli.script import FailFast
from npuscope.cli.spooled_trace import SpooledTrace
from npuscope.errors import UserError
from npuscope.mstx.ranges import Ranges
from npuscope.trace.recorder import Batch, Consumer
from npuscope.trace.schema import Launch

if TYPE_CHECKING:
    from npuscope.profiler.choice import Choice

CLOSED, STOP, COUNTS = "closed", "stop", "counts"


class Keeper:
    """Chooses and keeps launches of one process."""

    def __init__(self, folder: Path, choice: Choice, ranges: Ranges) -> None:
        self.folder = folder
        self.choice = choice
        self.ranges = ranges

    def consumers(self, launch: Launch) -> list[Consumer]:
        """Who takes the batches of a launch that begins: nobody, or its file."""
        number = self._chosen(launch)
        if number < 0:
            return []
        trace = SpooledTrace(launch_file(self.folder, number))

        def take(batch: Batch) -> None:
            with _told(self.folder):
                trace.write(batch)
            if batch.last:
                trace.close()
            if batch.last and self.choice.stop and number + 1 == self.choice.count:
                (self.folder / STOP).touch()
                raise FailFast("all launches that were asked for are there")

        return [take]

    def _chosen(self, launch: Launch) -> int:
        """Which of the kept ones this launch is; -1: none."""
        choice, messages, mine = self.choice, self.ranges.messages, -1
        with _told(self.folder), _counts(self.folder) as counts:
            number, kept = counts
            wanted = (
                number >= choice.skip and choice.inside(messages) and choice.fits(launch.kernel)
                and (choice.count is None or kept < choice.count) and not (self.folder / CLOSED).exists()
            )  # fmt: skip
            counts[:] = number + 1, kept + wanted
            mine = kept if wanted else -1
            place = f"{launch.frame.file}:{launch.frame.line}" if launch.frame else ""
            line = Launched(
                number, launch.kernel, launch.chip, launch.device, os.getpid(), cores_of(launch), place, messages, mine
            )
            with open(self.folder / LIST, "ab") as file:
                file.write(orjson.dumps(asdict(line)) + b"\n")
        return mine


@contextmanager
def _counts(folder: Path) -> Iterator[list[int]]:
    """The two numbers, to be changed in place; nobody else has them meanwhile."""
    handle = os.open(folder / COUNTS, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        counts = [int(word) for word in os.pread(handle, 64, 0).split()] or [0, 0]
        yield counts
        os.pwrite(handle, b"%020d %020d" % (counts[0], counts[1]), 0)
    finally:
        os.close(handle)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """A full disk ends the script in words; that the folder went away with the run does not matter any more."""
    try:
        yield
    except OSError as error:
        if folder.exists():
            raise UserError(f"cannot write to the temporary folder {folder}: {error.strerror}") from None
