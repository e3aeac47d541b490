"""The user ranges of stock PyTorch (`torch.profiler.record_function`) as Marker records, without PyTorch's profiler.

A range costs its owner about 18 microseconds without us. While we collect, the class's own two methods are wrapped and
a range costs one or two microseconds more; otherwise they are PyTorch's again. Ranges that C++ code opens, and ranges
inside TorchScript or compiled functions, do not come by here.
"""

from __future__ import annotations

import os
import threading
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
from npuscope.monitor.agent.sources.torch_range_hook import HOOK

DOMAIN = "torch"
FIRST_NUMBER = 1 << 40
"""Numbers of ranges begin here, so that they meet no other source's."""
MOST = 1 << 19
"""Records that wait to be delivered, at most; those beyond are counted and lost."""
_MARK = "_npuscope_range"
START, END = int(Flag.START), int(Flag.END)

Row = tuple[int, int, int, int, str]
"""Flag, time, number, thread, name."""


class TorchRanges:
    """Listens to `record_function` between start and stop."""

    def __init__(self) -> None:
        self.lost = 0
        self._rows: list[Row] = []
        self._next = count(FIRST_NUMBER).__next__
        self.running = False
        self._lock = threading.Lock()  # of those who deliver

    def start(self, strings: Strings, deliver: Deliver) -> None:
        """Take ranges from now on."""
        self.stop()
        self.lost = 0
        self._strings, self._names, self._deliver = strings, Numbered(strings), deliver
        self._rows = []
        HOOK.entered, HOOK.left = self._entered, self._left
        HOOK.install()
        self.running = True

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
        if self.running:
            self._let_go()
            self.flush()

    def abandon(self) -> None:
        """In a fork: nothing is delivered any more."""
        if self.running:
            self._let_go()

    def _let_go(self) -> None:
        self.running = False
        HOOK.entered = HOOK.left = None
        HOOK.remove()

    def _entered(self, one: Any) -> None:
        """A range begins, on its own thread."""
        if len(self._rows) < MOST:
            number = one.__dict__[_MARK] = self._next()
            self._rows.append((START, time_ns(), number, get_native_id(), str(one.name)))
        else:
            self.lost += 1

    def _left(self, one: Any) -> None:
        """A range ends; only one whose beginning was noted counts."""
        number = one.__dict__.pop(_MARK, None)
        if number is not None:
            self._rows.append((END, time_ns(), number, get_native_id(), str(one.name)))

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
