"""The user ranges of stock PyTorch (`torch.profiler.record_function`) as Marker records, without PyTorch's profiler.

A range costs its owner about 18 microseconds without us. While we collect, the class's own two methods are wrapped and
a range costs one or two microseconds more; otherwise they are PyTorch's again. Ranges that C++ code opens, and ranges
inside TorchScript or compiled functions, do not come by here.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from itertools import count
from threading import get_native_id
from time import time_ns
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import batch
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.numbered import Numbered
from npuscope.monitor.agent.sources.source import Deliver

DOMAIN = "torch"
FIRST_NUMBER = 1 << 40
"""Numbers of ranges begin here, so that they meet no other source's."""
MOST = 1 << 19
"""Records that wait to be delivered, at most; those beyond are counted and lost."""
_MARK = "_npuscope_range"

Row = tuple[int, int, int, int, str]
"""Flag, time, number, thread, name."""


class TorchRanges:
    """Listens to `record_function` between start and stop."""

    def __init__(self) -> None:
        self.lost = 0
        self._rows: list[Row] = []
        self._next = count(FIRST_NUMBER).__next__
        self._restore: Callable[[], None] | None = None
        self._lock = threading.Lock()  # of those who deliver

    @property
    def running(self) -> bool:
        """Whether ranges are taken."""
        return self._restore is not None

    def start(self, strings: Strings, deliver: Deliver) -> None:
        """Take ranges from now on."""
        self.stop()
        self.lost = 0
        self._strings, self._names, self._deliver = strings, Numbered(strings), deliver
        self._rows = []
        self._restore = wrap(sys.modules["torch.autograd.profiler"].record_function, self._rows, self._next, self._lose)

    def flush(self) -> None:
        """Deliver what has come."""
        with self._lock:
            taken = len(self._rows)
            rows = self._rows[:taken]
            # Those that came meanwhile stay: cutting a list is one step of the interpreter.
            del self._rows[:taken]
            if rows:
                self._deliver_rows(rows)

    def stop(self) -> None:
        """Deliver the rest and give PyTorch its methods back."""
        if self._restore is not None:
            self._restore()
            self._restore = None
            self.flush()

    def abandon(self) -> None:
        """In a fork: nothing is delivered any more."""
        if self._restore is not None:
            self._restore()
            self._restore = None

    def _lose(self) -> None:
        self.lost += 1

    def _deliver_rows(self, rows: list[Row]) -> None:
        flags, times, numbers, threads, names = zip(*rows, strict=True)
        nowhere = np.full(len(rows), -1)
        self._deliver(
            batch(
                Kind.MARKER,
                {
                    "flag": flags, "side": np.full(len(rows), Side.HOST), "time": times, "id": numbers,
                    "process": np.full(len(rows), os.getpid()), "thread": threads, "device": nowhere,
                    "stream": nowhere, "name": self._names.of(names),
                    "domain": np.full(len(rows), self._strings.number(DOMAIN)),
                },
            )
        )  # fmt: skip


def wrap(owner: Any, rows: list[Row], following: Callable[[], int], lose: Callable[[], None]) -> Callable[[], None]:
    """Note each range of `record_function` in `rows`; returns what undoes it. The wrappers keep PyTorch's own methods
    reachable (`__wrapped__`), because TorchScript reads their source."""
    enter, leave = owner.__enter__, owner.__exit__
    start, end = int(Flag.START), int(Flag.END)

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        if len(rows) < MOST:
            number = following()
            self.__dict__[_MARK] = number
            rows.append((start, time_ns(), number, get_native_id(), str(self.name)))
        else:
            lose()
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self: Any, *reason: Any) -> Any:
        try:
            return leave(self, *reason)
        finally:
            number = self.__dict__.pop(_MARK, None)
            if number is not None:
                rows.append((end, time_ns(), number, get_native_id(), str(self.name)))

    def restore() -> None:
        # Whoever has wrapped ours meanwhile keeps it; it then only calls through.
        if owner.__enter__ is __enter__:
            owner.__enter__ = enter
        if owner.__exit__ is __exit__:
            owner.__exit__ = leave

    owner.__enter__, owner.__exit__ = __enter__, __exit__
    return restore
