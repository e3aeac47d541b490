"""One window after the other: when each is opened and closed, by whom, and what becomes of its records.

Windows are opened and closed between two steps of the job, on the job's own thread. Then nothing of the job runs, so no
operator is cut or missed; and an operator that ends after its window was closed, while the next one is open, writes
into memory that PyTorch has freed. Closing stands in the job's way for as long as there are records, so a window is
closed when it holds a few thousand. A job that does not step is not recorded.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.torch_others import others_at_work, release, watch
from npuscope.monitor.agent.sources.torch_range_hook import HOOK
from npuscope.monitor.agent.sources.torch_records import batches
from npuscope.monitor.agent.sources.torch_window import (
    Plan,
    close_window,
    demand,
    inside_backward,
    open_window,
    silence,
)

NAME = "TorchSource"
RECORDS = 4096
"""Records of a window, about: 15 to 25 milliseconds of closing."""
SHORTEST, FIRST, LONGEST = 0.05, 0.1, 1.0
"""Seconds a window lasts at least; the first one tells how many records come."""
RETRY_SECONDS = 1.0
STOP_SECONDS = 2.0
"""How long a stop, or another profiler, waits for the step that closes the window."""
CONVERT_SECONDS = 30.0

IDLE = "collections during which the job took no step, so that nothing could be recorded"
OTHER = "pauses for another profiler"
LEFT = "windows that no step closed in time"
FAILED = "windows that PyTorch did not give"
TAKEN = "windows that another profiler took over"
UNSAFE = "collections that ended early, because an operator outlasted its window"


@dataclass
class _Window:
    kinds: frozenset[Kind]
    since: float
    """Monotonic seconds."""
    owner: int
    """The thread that opened it and must close it."""
    wanted: bool = True
    taken: bool = False
    """Another profiler has begun on top of it, so that it cannot be closed any more."""

    @property
    def mine(self) -> bool:
        """Whether this thread may close it."""
        return self.owner == threading.get_ident()

    @property
    def orphaned(self) -> bool:
        """Whether the thread that must close it has ended."""
        return self.owner not in sys._current_frames()


class TorchWindows:
    """Records operators, allocations, collectives and a GPU's work until it is stopped. One for a process: whoever
    comes later finds the window that nobody has closed yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the open window; a step never waits for it
        self._converting = threading.Lock()
        self._window: _Window | None = None
        self._closed: deque[tuple[Any, Sequence[Any], frozenset[Kind]]] = deque()
        self._lost: Counter[str] = Counter()
        self._running = self._leaving = self._unsafe = False
        self._wake, self._left = threading.Event(), threading.Event()

    @property
    def losses(self) -> Mapping[str, int]:
        """What was not seen since the last start, by reason."""
        return dict(+self._lost)

    @property
    def recording(self) -> bool:
        """Whether a window is open."""
        return self._window is not None

    def start(self, kinds: frozenset[Kind], plan: Plan, strings: Strings, deliver: Deliver, *, wait: bool) -> None:
        """Record from the next step on. Raises Unavailable where PyTorch cannot, and when another profiler runs unless
        we are to `wait`."""
        demand()
        if self._running:
            raise Unavailable("something else in this process records with PyTorch's profiler already")
        if self._unsafe and not wait:
            raise Unavailable("an operator outlasted its window, so PyTorch's profiler is not opened again in here")
        watch(self._make_way)
        if others_at_work() and not wait:
            release(self._make_way)
            raise Unavailable("another PyTorch profiler is running in this process, and there can be only one")
        self._strings, self._deliver = strings, deliver
        self._kinds, self._plan = kinds, plan
        self._lost.clear()
        self._length, self._not_before = FIRST, 0.0
        self._paused = self._leaving = self._opened = False
        self._running = True
        HOOK.install()
        self._thread = threading.Thread(target=self._serve, name=NAME, daemon=True)
        self._thread.start()

    def change(self, kinds: frozenset[Kind], plan: Plan) -> None:
        """Record other kinds from the next step on."""
        self._kinds, self._plan = kinds, plan
        self.flush()

    def step(self) -> None:
        """The job is between two steps; on its own thread. Never raises and never waits."""
        if not (self._running or self._window) or not self._lock.acquire(blocking=False):
            return
        try:
            if not inside_backward():
                self._at_step(time.monotonic())
        except Exception:  # Unavailable, or what a PyTorch that we do not know raises
            self._fail()
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Deliver what is complete so far; the next step closes its window."""
        self._length = 0.0
        self._convert()

    def stop(self) -> None:
        """Deliver the rest and record no more."""
        if not self._running:
            return
        self._running = False
        self._left.clear()
        with self._lock:
            window = self._window
            if window and window.mine and not window.taken:
                self._close()
                window = None
        if window and not self._left.wait(0.0 if window.taken else STOP_SECONDS):
            self._lost[LEFT] += not window.taken
            window.wanted = False  # the next step, if ever, closes it
        if not self._opened and not self._lost:
            self._lost[IDLE] += 1
        self._wake.set()
        self._thread.join(CONVERT_SECONDS)
        self._convert()
        release(self._make_way)
        HOOK.remove()

    def leave(self) -> None:
        """The job is about to end the agent, perhaps on its own thread: nobody else could close this thread's
        window."""
        with self._lock:
            self._leaving = True
            window = self._window
            if window and window.mine and not window.taken:
                self._close()

    def abandon(self) -> None:
        """In a fork: the window is a copy of the parent's, and this thread would fill it for ever."""
        window, self._window = self._window, None
        if self._running:
            self._running = False
            release(self._make_way)
            HOOK.remove()
        HOOK.shielded = 0
        self._closed.clear()
        self._lock, self._converting = threading.Lock(), threading.Lock()
        if window is not None and window.mine and not window.taken:
            close_window()

    def _serve(self) -> None:
        while self._running:
            self._wake.wait()
            self._wake.clear()
            try:
                self._convert()
            except Exception:  # whatever it was, the next window may go well
                self._lost[FAILED] += 1

    def _at_step(self, now: float) -> None:
        window = self._window
        if window and window.orphaned:
            self._window = window = None
            self._lost[LEFT] += 1
        if window and not window.mine:
            return  # several threads step; the first one is recorded
        if window and window.taken:
            self._give_up()
        elif not self._running:
            if window:
                self._close()
                self._left.set()
        elif others_at_work():
            self._pause()
        elif window is None:
            if now >= self._not_before:
                self._open()
        elif now - window.since >= self._length:
            self._close()
            self._open()

    def _open(self) -> None:
        if self._unsafe:
            self._lost[UNSAFE] = 1
            return
        if self._leaving:
            return
        self._paused = False
        open_window(self._plan)
        self._opened = True
        owner = HOOK.shielded = threading.get_ident()
        self._window = _Window(self._kinds, time.monotonic(), owner)

    def _close(self) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        lasted = time.monotonic() - window.since
        HOOK.shielded = 0
        result, events, whole = close_window()
        self._unsafe |= not whole
        self._length = min(max(RECORDS * lasted / max(len(events), 1), SHORTEST), LONGEST)
        if window.wanted:
            self._closed.append((result, events, window.kinds))
            self._wake.set()

    def _pause(self) -> None:
        """Another profiler is at work."""
        self._close()
        if not self._paused:
            self._paused = True
            self._lost[OTHER] += 1

    def _make_way(self) -> None:
        """Another profiler is about to begin, on this thread. A window that only another thread can close is waited
        for."""
        end = time.monotonic() + STOP_SECONDS
        while True:
            with self._lock:
                window = self._window
                if window is None or window.orphaned:
                    self._window = None
                    return
                if window.mine and not window.taken:
                    self._pause()
                    return
                if time.monotonic() >= end:
                    window.taken = True
                    return
            time.sleep(0.005)

    def _give_up(self) -> None:
        """This thread's window cannot be closed without ending the process, so it is left, and kept from growing."""
        HOOK.shielded = 0
        silence()
        self._window = None
        self._unsafe = True
        self._lost[TAKEN] += 1

    def _fail(self) -> None:
        self._lost[FAILED] += 1
        self._not_before = time.monotonic() + RETRY_SECONDS

    def _convert(self) -> None:
        with self._converting:
            while self._closed:
                result, events, kinds = self._closed.popleft()
                for made in batches(result, events, kinds, self._strings):
                    self._deliver(made)
