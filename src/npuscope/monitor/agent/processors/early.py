"""A thread that writes between two reports when much has come."""

from __future__ import annotations

import threading
from collections.abc import Callable

STOP_SECONDS = 30.0


class Early:
    """Calls `work` after a wake. When that raises it rests until it is allowed to go on: the next report meets the
    same problem, and tells of it."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._name = name
        self._work = work
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._thread: threading.Thread | None = None
        self._resting = self._closed = False

    def wake(self) -> None:
        """Have it called soon. From any thread, at little cost."""
        if self._resting or self._closed or self._event.is_set():
            return
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
        self._event.set()

    def allow(self) -> None:
        """What made it rest is over."""
        self._resting = False

    def close(self) -> None:
        """End the thread once its work is done."""
        with self._lock:
            self._closed = True
        self._event.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def _serve(self) -> None:
        while True:
            self._event.wait()
            self._event.clear()
            if self._closed:
                return
            try:
                self._work()
            except Exception:
                self._resting = True
