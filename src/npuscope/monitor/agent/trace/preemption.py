"""There is one profiler in a process, and the program's own goes first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Preemption:
    """While installed, a profiler that the program starts is preceded by a call, which ends ours. Two at once would
    leave the later one with the events of both, and the process with a crash when the other one stops."""

    def __init__(self, preempted: Callable[[], None]) -> None:
        self._preempted = preempted
        self._own = threading.local()
        self._original: Any = None

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Around what we do with the profiler ourselves."""
        self._own.now = True
        try:
            yield
        finally:
            self._own.now = False

    def install(self) -> None:
        """From now on."""
        profile = sys.modules["torch"].autograd.profiler.profile
        original = self._original = profile._prepare_trace

        def prepare(profiler: Any) -> None:
            if not getattr(self._own, "now", False):
                with suppress(Exception):  # whatever becomes of ours, the program's profiler starts
                    self._preempted()
            original(profiler)

        self._installed = profile._prepare_trace = prepare

    def remove(self) -> None:
        """No longer."""
        original, self._original = self._original, None
        if original is None:
            return
        profile = sys.modules["torch"].autograd.profiler.profile
        if profile._prepare_trace is self._installed:
            profile._prepare_trace = original
