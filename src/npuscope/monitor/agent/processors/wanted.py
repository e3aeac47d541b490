"""Which of the records that come belong into the files of a run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

import numpy as np

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.processors.processor import Run

OLD = "ended before the start"


class Wanted:
    """Those of kinds that a file has a place for, which did not end before the run started. The others are counted,
    and a kind without a place is named once."""

    def __init__(self, run: Run, what: str, kinds: frozenset[Kind]) -> None:
        self._run = run
        self._what = what
        self._kinds = kinds
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def of(self, batch: Batch) -> Batch:
        """The wanted records of a batch. From any thread."""
        if batch.kind not in self._kinds:
            self._refuse(batch)
            return batch.where(np.arange(0))
        old = batch.end < self._run.started
        if not old.any():
            return batch
        with self._lock:
            self._counts[OLD] += int(old.sum())
        return batch.where(np.flatnonzero(~old))

    def _refuse(self, batch: Batch) -> None:
        reason = f"{batch.kind.label} has no place in {self._what}"
        with self._lock:
            first = reason not in self._counts
            self._counts[reason] += len(batch)
        if first:
            self._run.warn(f"records of kind {batch.kind.label} are not stored: {self._what} have no place for them")

    @property
    def counts(self) -> Mapping[str, int]:
        """Records that were not wanted, by reason."""
        with self._lock:
            return dict(self._counts)
