"""The ranges of a process that are open, and the one who is told of ranges and marks."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import Any

DEFAULT_DOMAIN = "default"


MARK, START, END = 0, 1, 2
"""What a listener is told of."""

Listener = Callable[[int, int, str, str, Any], None]
"""Takes (what, number, message, domain, stream), in the thread that made the call; never raises. The end of a range
comes with the message, domain and stream of its start. A stream of None: the call concerns the host only."""

_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    """Tell `listener` of everything from now on, in place of the one before; None: nobody."""
    global _listener
    _listener = listener


# Whoever listened has its threads in the parent only.
os.register_at_fork(after_in_child=lambda: listen(None))


class Ranges:
    """The ranges of a process that are open. Every method may be called from any thread; none takes a lock, because
    each step on the dictionary and the counter is one step of the interpreter."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, str, Any]] = {}
        self._next = count(1).__next__

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages of the open ranges, the outermost first."""
        return tuple(message for message, _, _ in tuple(self._open.values()))

    def start(self, message: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> int:
        """Open a range; returns its number, 0 for a message that is no text, as the vendor's module does."""
        if not message or not isinstance(message, str) or not isinstance(domain, str):
            return 0
        number = self._next()
        self._open[number] = message, domain, stream
        if _listener is not None:
            _listener(START, number, message, domain, stream)
        return number

    def end(self, range_id: int = 0, domain: str = DEFAULT_DOMAIN, *, rangeId: int = 0) -> None:
        """Close a range; a number that stands for none is let pass. ``rangeId`` is what ``mstx`` calls it."""
        number = range_id or rangeId
        found = self._open.pop(number, None)
        if found is not None and _listener is not None:
            _listener(END, number, *found)

    def mark(self, message: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> None:
        """Mark this moment; it holds nothing, so that nobody needs to know of it but who listens."""
        if _listener is not None and message and isinstance(message, str) and isinstance(domain, str):
            _listener(MARK, self._next(), message, domain, stream)
