"""Counters that go on from one collection to the next for as long as the process lives."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np

from npuscope.monitor.activity.batch import Column


class Numbers:
    """Numbers of tasks on devices, of collectives, and of collectives in their group; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks = self._operations = 0
        self._in_group: Counter[str] = Counter()

    def tasks(self, count: int) -> Column:
        """The next so many `globalTaskId`, int64."""
        with self._lock:
            begin, self._tasks = self._tasks, self._tasks + count
        return np.arange(begin, begin + count)

    def operations(self, count: int) -> Column:
        """The next so many `opId`, int64."""
        with self._lock:
            begin, self._operations = self._operations, self._operations + count
        return np.arange(begin, begin + count)

    def in_group(self, group: str, count: int) -> Column:
        """The next so many places in a group, int64."""
        with self._lock:
            begin = self._in_group[group]
            self._in_group[group] += count
        return np.arange(begin, begin + count)


PROCESS = Numbers()
"""Those of this process."""
