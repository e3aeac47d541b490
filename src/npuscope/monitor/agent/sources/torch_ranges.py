"""The user ranges of stock PyTorch (`torch.profiler.record_function`) as Marker records, without PyTorch's profiler.

A range costs its owner about 18 microseconds without us. While we collect, the class's own methods are wrapped and a
range costs one or two microseconds more; otherwise they are PyTorch's again. Ranges that C++ code opens, and ranges
inside TorchScript or compiled functions, do not come by here.

On a thread whose operators are recorded, ranges do not go on to PyTorch at all: `torch_recorder` says why. Nobody
misses them, since another recorder on that thread begins with ours gone, and does not have ranges from before it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from itertools import count
from threading import get_ident, get_native_id
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
_KEPT = "_npuscope_kept"

Row = tuple[int, int, int, int, str]
"""Flag, time, number, thread, name."""


class Hook:
    """What is done at PyTorch's ranges. One for a process."""

    def __init__(self) -> None:
        self.rows: list[Row] | None = None
        """Where ranges are noted."""
        self.lose: Callable[[], None] = lambda: None
        self.kept = 0
        """The thread whose ranges do not go on to PyTorch, 0 for none."""
        self.inside = 0
        """Ranges that did not go on to PyTorch and have not ended; PyTorch's own method would not end them."""
        self._holders: set[str] = set()
        self._restore: Callable[[], None] | None = None
        self._lock = threading.RLock()  # a signal's handler may have ranges too

    def hold(self, holder: str) -> None:
        """Wrap the methods, for one of those who need it."""
        with self._lock:
            self._holders.add(holder)
            if self._restore is None:
                self._restore = _wrap(sys.modules["torch.autograd.profiler"].record_function, self)

    def release(self, holder: str = "") -> None:
        """Give PyTorch its methods back when nobody needs it any more."""
        with self._lock:
            self._holders.discard(holder)
            if not self._holders and not self.inside and self._restore is not None:
                self._restore()
                self._restore = None

    def ended(self) -> None:
        """A range has ended that did not go on to PyTorch."""
        self.inside -= 1
        if not self.inside and not self._holders:
            self.release()

    def abandon(self) -> None:
        """In a fork: the lock may be held by a thread that is not here."""
        self._lock, self.kept = threading.RLock(), 0


HOOK = Hook()


class TorchRanges:
    """Listens to `record_function` between start and stop."""

    def __init__(self) -> None:
        self.lost = 0
        self._rows: list[Row] = []
        self._lock = threading.Lock()  # of those who deliver
        self.running = False
        """Whether ranges are taken."""

    def start(self, strings: Strings, deliver: Deliver) -> None:
        """Take ranges from now on."""
        self.stop()
        self.lost = 0
        self._strings, self._names, self._deliver = strings, Numbered(strings), deliver
        self._rows = []
        HOOK.rows, HOOK.lose = self._rows, self._lose
        HOOK.hold("ranges")
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
            self.abandon()
            self.flush()

    def abandon(self) -> None:
        """In a fork: nothing is delivered any more."""
        if self.running:
            self.running = False
            HOOK.rows = None
            HOOK.release("ranges")

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


_next = count(FIRST_NUMBER).__next__


def _wrap(owner: Any, hook: Hook) -> Callable[[], None]:
    """Wrap the class's methods; returns what undoes it. The wrappers keep PyTorch's own methods reachable
    (`__wrapped__`), because TorchScript reads their source."""
    enter, leave, later = owner.__enter__, owner.__exit__, owner._call_end_callbacks_on_future
    start, end = int(Flag.START), int(Flag.END)

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        rows = hook.rows
        if rows is not None:
            if len(rows) < MOST:
                number = _next()
                self.__dict__[_MARK] = number, rows
                rows.append((start, time_ns(), number, get_native_id(), str(self.name)))
            else:
                hook.lose()
        if hook.kept and hook.kept == get_ident():
            self.__dict__[_KEPT] = True
            hook.inside += 1
            return self
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self: Any, *reason: Any) -> Any:
        try:
            if not self.__dict__.pop(_KEPT, False):
                return leave(self, *reason)
            hook.ended()
            return None
        finally:
            number, noted = self.__dict__.pop(_MARK, (0, None))
            if noted is hook.rows and noted is not None:
                noted.append((end, time_ns(), number, get_native_id(), str(self.name)))

    @functools.wraps(later)
    def _call_end_callbacks_on_future(self: Any, future: Any) -> Any:
        return future if _KEPT in self.__dict__ else later(self, future)

    wrapped = {
        "__enter__": (enter, __enter__),
        "__exit__": (leave, __exit__),
        "_call_end_callbacks_on_future": (later, _call_end_callbacks_on_future),
    }

    def restore() -> None:
        for name, (theirs, ours) in wrapped.items():
            # Whoever has wrapped ours meanwhile keeps it; it then only calls through.
            if getattr(owner, name) is ours:
                setattr(owner, name, theirs)

    for name, (_, ours) in wrapped.items():
        setattr(owner, name, ours)
    return restore
