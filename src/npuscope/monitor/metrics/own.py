"""The daemon itself: what went by, what waits, what it uses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

import psutil

from npuscope.monitor.metrics.process import Usage, look, process_values
from npuscope.monitor.metrics.record import DAEMON, Record, Value


class Own:
    """The source of the daemon's own metrics; `counts` tells those that only the daemon's parts know."""

    name = "daemon"

    def __init__(self, counts: Callable[[], Mapping[str, Value]]) -> None:
        self._counts = counts
        self._process = psutil.Process(os.getpid())
        self._before: Usage | None = None

    def sample(self) -> list[Record]:
        """One record."""
        after = look(self._process)
        values = process_values(self._before, after) | dict(self._counts())
        self._before = after
        return [Record(time.time(), DAEMON, {}, values)]
