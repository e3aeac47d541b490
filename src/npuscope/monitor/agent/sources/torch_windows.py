"""A GPU's work in windows, one after the other, on a thread of ours; between two of them something may be missed, which
is counted. Where the job's own profiler runs, or is about to, there is no window.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.torch_others import others_at_work, release, watch
from npuscope.monitor.agent.sources.torch_records import batches
from npuscope.monitor.agent.sources.torch_window import close_window, open_window

NAME = "TorchDevices"
LENGTH = 1.0
"""Seconds a window lasts."""
LOOK_SECONDS = 0.1
WAY_SECONDS = 10.0
"""How long another profiler waits for our window to close, which takes some tenths of a second."""
STOP_SECONDS = 30.0

BETWEEN = "gaps between two windows"
OTHER = "pauses for another profiler"
FAILED = "windows that PyTorch did not give"


class TorchWindows:
    """Records kernels, copies, sets and runtime calls until it is stopped."""

    def __init__(self) -> None:
        self._lost: Counter[str] = Counter()
        self._running = self._flushed = self._in_the_way = False
        self._closed = threading.Event()
        self._closed.set()
        self._wake, self._turned = threading.Event(), threading.Event()
        self._began: Unavailable | None = None
        self._thread: threading.Thread | None = None

    @property
    def losses(self) -> Mapping[str, int]:
        """What was not seen since the last start, by reason."""
        return dict(+self._lost)

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver, *, wait: bool) -> None:
        """Record. Raises Unavailable where PyTorch cannot, and when another profiler runs unless we are to `wait`."""
        watch(self._make_way)
        if others_at_work() and not wait:
            release(self._make_way)
            raise Unavailable("another PyTorch profiler is running in this process, and there can be only one")
        self._kinds, self._strings, self._deliver = kinds, strings, deliver
        self._lost.clear()
        self._running, self._began = True, None
        self._turned.clear()
        self._thread = threading.Thread(target=self._serve, name=NAME, daemon=True)
        self._thread.start()
        self._turned.wait(STOP_SECONDS)
        if self._began is not None:
            self.stop()
            raise self._began

    def change(self, kinds: frozenset[Kind]) -> None:
        """Record other kinds from now on."""
        self.flush()
        self._kinds = kinds

    def flush(self) -> None:
        """Deliver what is complete so far."""
        self._turned.clear()
        self._flushed = True
        self._wake.set()
        self._turned.wait(STOP_SECONDS)

    def stop(self) -> None:
        """Deliver the rest and record no more."""
        self._running = False
        self._wake.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        release(self._make_way)

    def abandon(self) -> None:
        """In a fork: the window and the thread are the parent's."""
        self._running, self._thread = False, None
        release(self._make_way)

    def _serve(self) -> None:
        since, paused = 0.0, False
        while self._running:
            is_open = not self._closed.is_set()
            try:
                if others_at_work() or self._in_the_way:
                    self._close()
                    self._lost[OTHER] += not paused
                    paused = True
                elif not is_open or self._flushed or time.monotonic() - since >= LENGTH:
                    paused = False
                    since = self._turn()
            except Unavailable as reason:
                self._lost[FAILED] += 1
                self._began = self._began or reason
            self._turned.set()
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
        try:
            self._close()
        except Unavailable:
            self._lost[FAILED] += 1

    def _turn(self) -> float:
        """Close the window, if there is one, and open another; returns when, in monotonic seconds."""
        self._flushed = False
        if self._close():
            self._lost[BETWEEN] += 1
        open_window()
        self._closed.clear()
        return time.monotonic()

    def _close(self) -> bool:
        if self._closed.is_set():
            return False
        try:
            result = close_window()
        finally:
            self._closed.set()
        for made in batches(result.events(), self._kinds, self._strings):
            self._deliver(made)
        return True

    def _make_way(self) -> None:
        """Another profiler is about to begin, on this thread, and looks like one at work already."""
        self._in_the_way = True
        self._wake.set()
        self._closed.wait(WAY_SECONDS)
        self._in_the_way = False
