"""Waits for the program of a run, and passes on to it what the user and the system say meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

GRACE = 0.3
"""Seconds in which a program that had the same signal from elsewhere (its terminal, its group) may end by itself."""

WATCHED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: exit status (128 + n for signal n), the signal or 0, and whether Ctrl-C was pressed."""

    code: int
    signal: int = 0
    interrupted: bool = False


class Quit(Exception):
    """Ctrl-C came a second time: stop at once, say nothing more."""


def attend(program: Callable[[], int], interrupted: Callable[[], None]) -> Ended:
    """Run `program` in a child process and wait for its end.

    In the child, this leaves by SystemExit with what `program` returns (or `program` replaces the process). A first
    Ctrl-C calls `interrupted` and lets the child end, a second one kills it and raises Quit.
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
        return _Watch(child, interrupted).until_end()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Watch:
    """One child and the signals that this process receives while it runs."""

    def __init__(self, child: int, interrupted: Callable[[], None]) -> None:
        self.child = child
        self.interrupted = interrupted
        self.presses = 0

    def until_end(self) -> Ended:
        """How the child ended."""
        while True:
            news = signal.sigwaitinfo(WATCHED)
            if news.si_signo == signal.SIGINT:
                ended = self._pressed(by_terminal=news.si_pid == 0)
            elif news.si_signo == signal.SIGCHLD:
                ended = self._ended()
            else:
                self._pass_on(news.si_signo)
                ended = None
            if ended is not None:
                return ended

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
        if self.presses and code:  # whatever it says (pyasc has a handler that exits with 2), Ctrl-C ended it
            return Ended(128 + signal.SIGINT, max(-code, 0), True)
        return Ended(128 - code, -code, bool(self.presses)) if code < 0 else Ended(code, 0, bool(self.presses))
