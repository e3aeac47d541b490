"""One collection, from start to stop: records come in from sources, pass the filter and go to the processor."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import ANY_END, Kind
from npuscope.monitor.agent.filter import Filter
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.processors.processor import Processor, Run
from npuscope.monitor.protocol.codes import Code

LATE = "came after the end"
UNPROCESSED = "the processor failed"
WRITTEN = frozenset({"written", "sent"})
"""What a processor's counts call records that were not lost."""


class Collection:
    """What runs between a start and a stop."""

    def __init__(self, processor: Processor, rules: Filter, run: Run, log: Log) -> None:
        self.processor = processor
        self.rules = rules
        self.run = run
        self.taken: Counter[Kind] = Counter()
        """Records that passed the filter."""
        self.lost: Counter[str] = Counter()
        """Records that were lost on the way to the processor, by reason."""
        self._log = log
        self._open = True
        self.over: Callable[[], int | None] = lambda: None
        """When it was over by the wall clock; None while it is not. What began after that is not wanted."""
        self._lock = threading.Lock()

    def deliver(self, batch: Batch) -> None:
        """Take a batch from a source, on any thread. Never raises."""
        try:
            self._take(batch)
        except Exception as error:
            self._lose(UNPROCESSED, len(batch))
            self._log.warn_once(f"records of kind {batch.kind.label} were lost: {error!r}")

    def _take(self, batch: Batch) -> None:
        if not self._open:
            self._lose(LATE, len(batch))
            return
        kept = self.rules.keep(batch, self.run.strings)
        if (until := self.over()) is not None:
            kept = before(kept, until)
        if not len(kept):
            return
        self.processor.add(kept)
        with self._lock:
            self.taken[kept.kind] += len(kept)

    def _lose(self, reason: str, count: int) -> None:
        with self._lock:
            self.lost[reason] += count

    def end(self, at: int) -> None:
        """It is over since this moment of the wall clock."""
        self.run.ended = at
        self.over = lambda: at

    def report(self, now: int) -> None:
        """Have the processor aggregate, send or write."""
        self._ask("written", lambda: self.processor.report(now))

    def close(self) -> None:
        """Have the rest written; `end` has been called and the sources have stopped."""
        self._open = False
        self._ask("written at the end", self.processor.close)

    def _ask(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or repr(error)
            self._log.error(Code.SYSCALL, f"what was collected could not be {what}: {reason}")

    def losses(self) -> Mapping[str, int]:
        """Records lost in here and in the processor, by reason."""
        with self._lock:
            found = Counter(self.lost)
        try:
            found.update({reason: count for reason, count in self.processor.counts.items() if reason not in WRITTEN})
        except Exception as error:
            self._log.warn_once(f"the processor does not say what it dropped: {error!r}")
        return +found


def before(batch: Batch, until: int) -> Batch:
    """The records that had begun by then. The end of a range that had begun counts, whenever it comes."""
    begun = batch["time" if batch.kind is Kind.MARKER else "start"] <= until
    if batch.kind is Kind.MARKER:
        begun = begun | ((batch["flag"] & ANY_END) != 0)
    return batch if begun.all() else batch.where(np.flatnonzero(begun))
