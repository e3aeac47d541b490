"""The vendor's calls on the ranges of this process.

Names and arguments are those of the vendor's ``mstx`` module (``mark``, ``range_start``, ``range_end``,
``get_tool_id``) and of ``torch_npu.npu.mstx`` (these with a domain, ``mstx_range``, ``annotate``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from npuscope.mstx.ranges import DEFAULT_DOMAIN, Ranges

_ranges = Ranges()


def current() -> Ranges:
    """The ranges that the calls act on."""
    return _ranges


def use(ranges: Ranges) -> None:
    """Let the calls act on `ranges` from now on."""
    global _ranges
    _ranges = ranges


def range_start(message: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> int:
    """Open a range; returns its number from 1 on, 0 for a message that is no text."""
    return _ranges.start(message, stream, domain)


def range_end(range_id: int = 0, domain: str = DEFAULT_DOMAIN, *, rangeId: int = 0) -> None:
    """Close a range; a number that stands for none is let pass. ``rangeId`` is what ``mstx`` calls it."""
    _ranges.end(range_id, domain, rangeId=rangeId)


def mark(message: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> None:
    """Mark this moment."""
    _ranges.mark(message, stream, domain)


def mstx_range(msg: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> annotate:
    """A range around each call of the function that this decorates, or around a block."""
    return annotate(msg, stream, domain)


def get_tool_id() -> int:
    """Which tool listens; 0, as where the vendor's library finds none."""
    return 0


class annotate:
    """A range around a block, or around each call of a function, called as the function unless told otherwise."""

    def __init__(self, message: str = "", stream: Any = None, domain: str = DEFAULT_DOMAIN) -> None:
        self.message = message
        self.stream = stream
        self.domain = domain
        self._numbers: list[int] = []

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a range around each of its calls."""
        message = self.message or getattr(function, "__name__", "")

        @wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            number = range_start(message, self.stream, self.domain)
            try:
                return function(*arguments, **named)
            finally:
                range_end(number)

        return called

    def __enter__(self) -> annotate:
        self._numbers.append(range_start(self.message, self.stream, self.domain))
        return self

    def __exit__(self, *error: object) -> None:
        range_end(self._numbers.pop())
