"""One window after the other: when each is opened and closed, by whom, and what becomes of its records.

Closing stands in the job's way for as long as there are records, so a window is closed when it holds a few thousand.
It is closed between two steps, on the job's own thread, when the job steps: then no operator of a step is cut or
missed. Else a thread of ours closes it, and what the job did until the next one was open is counted as lost time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.torch_others import others_at_work, release, watch
from npuscope.monitor.agent.sources.torch_records import batches
from npuscope.monitor.agent.sources.torch_window import Plan, close_window, demand, open_window

NAME = "TorchSource"
RECORDS = 4096
"""Records of a window, about: 15 to 25 milliseconds of closing."""
SHORTEST, FIRST, LONGEST = 0.05, 0.1, 1.0
"""Seconds a window lasts; the first one tells how many records come."""
LOOK_SECONDS = 0.1
GRACE = 4.0
"""A step is expected for as many of the last step's lengths."""
GRACE_SECONDS = 1.0
"""... and for no longer than this."""
MEMORY_SECONDS = 2.0
"""How long a job may take to step, when allocations are wanted, before recording begins without them."""
STOP_SECONDS = 2.0
"""How long a stop waits for the step that closes the job's own window."""
CONVERT_SECONDS = 30.0

BETWEEN = "microseconds between two windows"
OTHER = "microseconds while another profiler ran"
UNBOUND = "windows without allocations, because the job does not step"
LEFT = "windows that no step closed in time"
FAILED = "windows that PyTorch did not give"


@dataclass
class _Window:
    plan: Plan
    kinds: frozenset[Kind]
    since: float
    """Monotonic seconds."""
    owner: int
    """The thread that must close it, 0 when any may."""
    wanted: bool = True

    @property
    def mine(self) -> bool:
        return self.owner in (0, threading.get_ident())


class TorchWindows:
    """Records operators, allocations, collectives and a GPU's work until it is stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the open window; a step never waits for it
        self._converting = threading.Lock()
        self._window: _Window | None = None
        self._closed: deque[tuple[Any, _Window, float]] = deque()
        self._lost: Counter[str] = Counter()
        self._running = False
        self._stepped, self._gap = float("-inf"), 0.0
        self._wake, self._left = threading.Event(), threading.Event()

    @property
    def losses(self) -> Mapping[str, int]:
        """What was not seen since the last start, by reason."""
        return dict(+self._lost)

    @property
    def running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self._running

    def start(self, kinds: frozenset[Kind], plan: Plan, strings: Strings, deliver: Deliver, *, wait: bool) -> None:
        """Record. Raises Unavailable where PyTorch cannot, and when another profiler runs unless we are to `wait`."""
        demand()
        watch(self._make_way)
        if others_at_work() and not wait:
            release(self._make_way)
            raise Unavailable("another PyTorch profiler is running in this process, and there can be only one")
        self._strings, self._deliver = strings, deliver
        self._kinds, self._plan = kinds, plan
        self._lost.clear()
        self._length = FIRST
        self._began = self._looked = time.monotonic()
        self._running = True
        try:
            with self._lock:
                self._tend()
        except Unavailable:
            self._running = False
            release(self._make_way)
            raise
        self._thread = threading.Thread(target=self._serve, name=NAME, daemon=True)
        self._thread.start()

    def change(self, kinds: frozenset[Kind], plan: Plan) -> None:
        """Record other kinds from now on."""
        self._kinds, self._plan = kinds, plan
        self.flush()

    def step(self) -> None:
        """The job is between two steps; on its own thread. Never raises and never waits."""
        now = time.monotonic()
        self._gap, self._stepped = now - self._stepped, now
        if not (self._running or self._window) or not self._lock.acquire(blocking=False):
            return
        try:
            self._at_step(now)
        except Unavailable:
            self._lost[FAILED] += 1
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Deliver what is complete so far."""
        with self._lock:
            try:
                if self._running and self._window and self._window.mine:
                    self._turn_away_from_steps()
            except Unavailable:
                self._lost[FAILED] += 1
        self._convert()

    def stop(self) -> None:
        """Deliver the rest and record no more."""
        if not self._running:
            return
        self._running = False
        self._left.clear()
        with self._lock:
            waiting = self._window is not None and not self._window.mine
            if self._window and not waiting:
                self._close()
        if waiting and not self._left.wait(STOP_SECONDS):
            self._lost[LEFT] += 1
            if window := self._window:
                window.wanted = False  # the next step, if ever, closes it
        self._wake.set()
        self._thread.join(CONVERT_SECONDS)
        self._convert()
        release(self._make_way)

    def abandon(self) -> None:
        """In a fork: the window is a copy of the parent's, and this thread would fill it for ever."""
        window, self._window = self._window, None
        self._running = False
        self._closed.clear()
        self._lock, self._converting = threading.Lock(), threading.Lock()
        release(self._make_way)
        if window is not None:
            close_window()

    def _serve(self) -> None:
        while self._running:
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
            with self._lock:
                try:
                    self._tend()
                except Unavailable:
                    self._lost[FAILED] += 1
            self._convert()

    def _tend(self) -> None:
        """What is to be done away from the job's thread."""
        now = time.monotonic()
        looked, self._looked = self._looked, now
        window = self._window
        if not self._running or window and window.owner:
            return
        if others_at_work():
            self._lost[OTHER] += int((now - looked) * 1e6)
        elif window is None:
            patience = MEMORY_SECONDS if self._plan.memory else 0.0
            if not self._step_expected(now) and now - self._began >= patience:
                self._open(bound=False)
        elif now - window.since >= self._length and not (
            self._step_expected(now) and now - window.since < self._length + GRACE_SECONDS
        ):
            self._turn_away_from_steps()

    def _at_step(self, now: float) -> None:
        window = self._window
        if not self._running:
            if window and window.mine:
                self._close()
                self._left.set()
        elif others_at_work():
            return
        elif window is None:
            self._open(bound=self._plan.memory)
        elif window.mine and (now - window.since >= self._length or self._plan.memory and not window.owner):
            self._close()
            self._open(bound=self._plan.memory)

    def _step_expected(self, now: float) -> bool:
        return now - self._stepped < min(GRACE * self._gap, GRACE_SECONDS)

    def _turn_away_from_steps(self) -> None:
        began = time.perf_counter()
        self._close()
        self._open(bound=False)
        self._lost[BETWEEN] += int((time.perf_counter() - began) * 1e6)

    def _open(self, bound: bool) -> None:
        plan, kinds = self._plan, self._kinds
        if plan.memory and not bound:
            plan, kinds = Plan(False, plan.shapes, plan.devices), kinds - {Kind.MEMORY}
            self._lost[UNBOUND] += 1
        open_window(plan)
        self._window = _Window(plan, kinds, time.monotonic(), threading.get_ident() if bound else 0)

    def _close(self) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        lasted = time.monotonic() - window.since
        result = close_window()
        if window.wanted:
            self._closed.append((result, window, lasted))
            self._wake.set()

    def _make_way(self) -> None:
        """Another profiler is about to begin, on this thread."""
        with self._lock:
            if self._window and self._window.mine:
                self._close()

    def _convert(self) -> None:
        with self._converting:
            while self._closed:
                result, window, lasted = self._closed.popleft()
                events = result.events()
                rate = max(len(events), 1) / max(lasted, 1e-3)
                self._length = min(max(RECORDS / rate, SHORTEST), LONGEST)
                for made in batches(result, events, window.kinds, self._strings):
                    self._deliver(made)
