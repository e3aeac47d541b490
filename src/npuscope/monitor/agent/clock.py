"""The two clocks of a collection: one for lengths, which nobody sets, and one for time stamps."""

from __future__ import annotations

import time


class Clock:
    """The machine's clocks; tests move another one by hand."""

    def monotonic(self) -> float:
        """Seconds, for lengths."""
        return time.monotonic()

    def wall(self) -> int:
        """Nanoseconds since 1970, as records have them."""
        return time.time_ns()
