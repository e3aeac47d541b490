"""Waits for the program of a run, and passes on to it what the user and the system say meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from npuscope.cli.output import complain

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

GRACE = 0.3
"""Seconds in which a program that had the same signal from elsewhere (its terminal, its group) may end by itself."""

PATIENCE = 3.0
"""Seconds from the signal that asks a program to end to the one that ends it."""

TICK = 0.1
"""Seconds between two looks at the limit."""

WATCHED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: exit status (128 + n for signal n), the signal or 0, and whether Ctrl-C was pressed."""

    code: int
    signal: int = 0
    interrupted: bool = False
    timed_out: bool = False
    stopped: bool = False  # there was enough


@dataclass(frozen=True, slots=True)
class Limit:
    """When a program that still runs is told to end, which it has three seconds for: `seconds` after its start (None:
    never), or that long after `enough` became true. `told` is called when the time is up."""

    seconds: float | None = None
    enough: Callable[[], bool] = lambda: False
    told: Callable[[], None] = lambda: None


class Quit(Exception):
    """Ctrl-C came a second time: stop at once, say nothing more."""


def attend(program: Callable[[], int], interrupted: Callable[[], None], limit: Limit | None = None) -> Ended:
    """Run `program` in a child process and wait for its end.

    In the child, this leaves by SystemExit with what `program` returns (or `program` replaces the process). A first
    Ctrl-C calls `interrupted` and lets the child end, a second one kills it and raises Quit. At the `limit` the child
    and all that it has started are interrupted, then killed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sys.exit(program())
    try:
        return _Watch(child, interrupted, limit).until_end()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Watch:
    """One child and the signals that this process receives while it runs."""

    def __init__(self, child: int, interrupted: Callable[[], None], limit: Limit | None) -> None:
        self.child = child
        self.interrupted = interrupted
        self.presses = 0
        self.clock = _Clock(child, limit) if limit is not None else None

    def until_end(self) -> Ended:
        """How the child ended."""
        while True:
            news = self._news()
            if news is None:
                continue
            if news.si_signo == signal.SIGINT:
                ended = self._pressed(by_terminal=news.si_pid == 0)
            elif news.si_signo == signal.SIGCHLD:
                ended = self._ended()
            else:
                self._pass_on(news.si_signo)
                ended = None
            if ended is not None:
                return ended

    def _news(self) -> signal.struct_siginfo | None:
        """The next signal; None where the limit was looked at instead."""
        if self.clock is None:
            return signal.sigwaitinfo(WATCHED)
        news = signal.sigtimedwait(WATCHED, TICK)
        if news is None:
            self.clock.look()
        return news

    def _pressed(self, by_terminal: bool) -> Ended | None:
        """Ctrl-C. A terminal tells the child as well; one that came from a process is passed on."""
        self.presses += 1
        if self.presses > 1:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            raise Quit
        self.interrupted()
        if by_terminal:
            return None
        if signal.sigtimedwait({signal.SIGCHLD}, GRACE) is not None:
            ended = self._ended()
            if ended is not None:
                return ended
        self._pass_on(signal.SIGINT)
        return None

    def _pass_on(self, number: int) -> None:
        os.kill(self.child, number)

    def _ended(self) -> Ended | None:
        """None while the child has only been stopped or continued."""
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid == 0:
            return None
        code = os.waitstatus_to_exitcode(status)
        timed_out, stopped = (self.clock.timed_out, self.clock.stopped) if self.clock is not None else (False, False)
        if self.presses and code:  # whatever it says (pyasc has a handler that exits with 2), Ctrl-C ended it
            return Ended(128 + signal.SIGINT, max(-code, 0), True, timed_out, stopped)
        ended = (128 - code, -code) if code < 0 else (code, 0)
        return Ended(*ended, bool(self.presses), timed_out, stopped)


class _Clock:
    """Holds a child to its limit."""

    def __init__(self, child: int, limit: Limit) -> None:
        self.child = child
        self.limit = limit
        self.timed_out = False
        self._start = time.monotonic()
        self._enough: float | None = None  # when there was enough
        self._asked: float | None = None  # when it was asked to end

    @property
    def stopped(self) -> bool:
        """Whether there was enough: the program may have ended by itself between two looks."""
        return self._enough is not None or self.limit.enough()

    def look(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if self._enough is None and self.limit.enough():
            self._enough = now
        if self._asked is not None:
            if now > self._asked + PATIENCE:
                _send(self.child, signal.SIGKILL)
            return
        if self._enough is not None:
            if now > self._enough + PATIENCE:
                self._ask(now)
        elif self.limit.seconds is not None and now > self._start + self.limit.seconds:
            self.timed_out = True
            self.limit.told()
            self._ask(now)

    def _ask(self, now: float) -> None:
        self._asked = now
        _send(self.child, signal.SIGINT)


def _send(child: int, number: signal.Signals) -> None:
    """Send a signal to a process and to all below it, the lowest first."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(child)
        for process in [*reversed(top.children(recursive=True)), top]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def say_interrupted() -> None:
    """Tell a person who pressed Ctrl-C what happens now."""
    complain("npuscope: interrupted; waiting for the script to end (Ctrl-C again: quit at once)")
