"""What a source of activities offers to the collector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings

Deliver = Callable[[Batch], None]
"""Takes a batch from any thread; never raises."""


class Unavailable(Exception):
    """A source that cannot run here; the text says why and what to do."""


class Source(Protocol):
    """A source is made once a process and started and stopped many times, from the collector's thread.

    It may also have `refusals`, a mapping from kinds that were asked for to why it does not give them although it runs,
    `abandon()`, called in a child of `fork` instead of `stop`, `step(number)`, called on the job's thread after each of
    its steps, whether the source runs or not (it never raises and never waits), and `leave()`, called there before the
    job ends the agent.
    """

    name: str

    @property
    def kinds(self) -> frozenset[Kind]:
        """What it can give, as things are now."""

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Collect the kinds among `kinds` that it has. Raises Unavailable, and then nothing runs."""

    def change(self, kinds: frozenset[Kind]) -> None:
        """Collect other kinds from now on; what was collected stays."""

    def flush(self) -> None:
        """Deliver what is complete so far."""

    def stop(self) -> None:
        """Deliver the rest and stop; stopping twice does nothing."""

    @property
    def losses(self) -> Mapping[str, int]:
        """Records or buffers lost since the last start, by reason; empty when nothing was."""
