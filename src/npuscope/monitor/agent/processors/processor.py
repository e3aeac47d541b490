"""What a processor offers to the collector; exactly one runs at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.strings import Strings


@dataclass
class Run:
    """One collection, from start to stop. Times are nanoseconds of the wall clock."""

    strings: Strings
    pid: int
    rank: int
    """-1 when unknown."""
    started: int
    warn: Callable[[str], None]
    """Takes one line for the agent's log."""
    ended: int = 0
    """Set before `close`."""
    groups: str = ""
    """`parallel_group_info` as JSON text, when known."""


class Processor(Protocol):
    """Gets batches that the filter has let through. Nothing here may throw into the training loop: problems are
    raised as OSError or the library's own error from `report` and `close` and logged by the collector; what could not
    be written is kept and tried again at the next report."""

    def add(self, batch: Batch) -> None:
        """Take a batch; cheap, from whichever thread delivers."""

    def report(self, now: int) -> None:
        """Aggregate, send or write what has come; once each report interval and whenever the collector wants."""

    def close(self) -> None:
        """Write the rest and the closing records; `run.ended` is set."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Records written and dropped, by reason, since the start."""
