"""What went by lately: counters only grow, and an impostor of last week is no news."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 600.0
STEP_SECONDS = 10.0


class Tally:
    """Remembers counters for a while."""

    def __init__(self, counts: Callable[[], dict[str, int]]) -> None:
        self._counts = counts
        self._past: deque[tuple[float, dict[str, int]]] = deque(maxlen=int(WINDOW_SECONDS / STEP_SECONDS))

    def note(self) -> None:
        """Take down where the counters stand; to be called every `STEP_SECONDS`."""
        self._past.append((time.monotonic(), self._counts()))

    def recent(self) -> dict[str, int]:
        """How much each has grown within the window; before the window is full, since the start."""
        now, counts = time.monotonic(), self._counts()
        full = len(self._past) == self._past.maxlen
        base = next((past for at, past in list(self._past) if now - at <= WINDOW_SECONDS), {}) if full else {}
        return {name: count - base.get(name, 0) for name, count in counts.items()}
