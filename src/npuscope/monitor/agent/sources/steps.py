"""The job's steps as Marker ranges, by which files are cut into steps."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from itertools import count
from time import time_ns

import numpy as np

from npuscope.monitor.activity.batch import batch
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver

DOMAIN = "step"
NAME = "step {}"
FIRST_NUMBER = 1 << 44
"""Numbers of ranges begin here, so that they meet no other source's."""
MOST = 1 << 18
"""Steps that wait to be delivered, at most; those beyond are counted and lost."""

Row = tuple[int, int, int, int]
"""Number of the step, its beginning, its end, its thread."""


class StepSource:
    """A range `step <n>` of the domain `step` from the end of step n - 1 to the end of step n. The step during which
    the collection starts, and the one during which it ends, are not whole and not reported."""

    name = "steps"
    kinds = frozenset({Kind.MARKER})

    def __init__(self) -> None:
        self._rows: list[Row] | None = None
        self._since = 0
        self._lost = 0
        self._next = count(FIRST_NUMBER).__next__
        self._lock = threading.Lock()  # of those who deliver

    def step(self, number: int) -> None:
        """The job has taken its step `number`; on the job's thread, so it does next to nothing."""
        rows = self._rows
        if rows is None:
            return
        now, since = time_ns(), self._since
        self._since = now
        if not since:
            return
        if len(rows) < MOST:
            rows.append((number, since, now, threading.get_native_id()))
        else:
            self._lost += 1

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Note steps from now on, when Marker is among the kinds."""
        self.stop()
        self._strings, self._deliver = strings, deliver
        self._lost = 0
        self.change(kinds)

    def change(self, kinds: frozenset[Kind]) -> None:
        """Note steps, or no longer."""
        if Kind.MARKER not in kinds:
            self.stop()
        elif self._rows is None:
            self._since = 0
            self._rows = []

    def flush(self) -> None:
        """Deliver the steps so far."""
        with self._lock:
            rows = self._rows
            if not rows:
                return
            taken = rows[:]
            del rows[: len(taken)]  # one that came meanwhile stays
            self._deliver_rows(taken)

    def stop(self) -> None:
        """Deliver the rest and note no more."""
        self.flush()
        self._rows = None

    def abandon(self) -> None:
        """In a fork: nothing is delivered any more."""
        self._rows = None

    @property
    def losses(self) -> Mapping[str, int]:
        """Steps that came faster than they were taken."""
        return {"steps beyond what may wait": self._lost} if self._lost else {}

    def _deliver_rows(self, rows: list[Row]) -> None:
        steps, starts, ends, threads = zip(*rows, strict=True)
        numbers = [self._next() for _ in rows]
        size = 2 * len(rows)
        nowhere = np.full(size, -1)
        names = self._strings.numbers(NAME.format(step) for step in steps)
        self._deliver(
            batch(
                Kind.MARKER,
                {
                    "flag": np.tile([Flag.START, Flag.END], len(rows)), "side": np.full(size, Side.HOST),
                    "time": np.column_stack([starts, ends]).ravel(), "id": np.repeat(numbers, 2),
                    "process": np.full(size, os.getpid()), "thread": np.repeat(threads, 2), "device": nowhere,
                    "stream": nowhere, "name": np.repeat(names, 2),
                    "domain": np.full(size, self._strings.number(DOMAIN)),
                },
            )
        )  # fmt: skip
