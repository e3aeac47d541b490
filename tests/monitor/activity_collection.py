"""The source over the activity library, and what it has delivered."""

from __future__ import annotations

import threading

import activity_library
import numpy as np

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.mspti import MsptiSource

ALL = frozenset(Kind)


class Collection:
    """A source and what it has delivered. While `gate` is clear, delivery waits."""

    def __init__(self) -> None:
        self.library = activity_library.library()
        self.source = MsptiSource()
        self.strings = Strings()
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[Batch] = []

    def start(self, kinds: frozenset[Kind] = ALL) -> None:
        self.source.start(kinds, self.strings, self._take)

    def _take(self, batch: Batch) -> None:
        self.gate.wait()
        self.batches.append(batch)

    def of(self, kind: Kind) -> Batch:
        """All records of a kind so far."""
        return joined([batch for batch in self.batches if batch.kind is kind])

    @property
    def counts(self) -> dict[Kind, int]:
        """How many records of each kind have come."""
        kinds = sorted({batch.kind for batch in self.batches})
        return {kind: sum(len(batch) for batch in self.batches if batch.kind is kind) for kind in kinds}

    def assert_is(self, kind: Kind, i: np.ndarray, different: int = 100) -> None:
        """Everything of a kind that has come is records `i`."""
        activity_library.assert_records(self.of(kind), i, self.strings, different)
