"""Other users of PyTorch's profiler in this process: two at a time end the process, so ours makes way.

The job's own `torch.profiler` is noticed when it prepares, which it does before anything is recorded.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any


class OtherProfilers:
    """Knows of each `torch.autograd.profiler.profile` that is at work (`torch.profiler.profile` uses one of those)."""

    def __init__(self, make_way: Callable[[], None]) -> None:
        """`make_way` is called on the other's thread, before the other begins."""
        self._make_way = make_way
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._restore: Callable[[], None] | None = None

    @property
    def active(self) -> bool:
        """Whether another one has begun, or prepares to, and has not ended."""
        return any(at_work(one) for one in list(self._seen))

    def watch(self) -> None:
        """Look for those that are at work already, then be told of each new one."""
        if self._restore is not None:
            return
        kind = sys.modules["torch.autograd.profiler"].profile
        prepare = kind._prepare_trace

        @functools.wraps(prepare)
        def _prepare_trace(profile: Any) -> Any:
            self._seen.add(profile)
            self._make_way()
            return prepare(profile)

        def restore() -> None:
            if kind._prepare_trace is _prepare_trace:
                kind._prepare_trace = prepare

        kind._prepare_trace = _prepare_trace
        self._restore = restore
        # One that prepared before we came leaves no other sign.
        self._seen.update(one for one in gc.get_objects() if type(one) is kind and at_work(one))

    def release(self) -> None:
        """Look no more."""
        if self._restore is not None:
            self._restore()
            self._restore = None
            self._seen.clear()


def at_work(profile: Any) -> bool:
    """Whether a profile has been entered and has no result yet."""
    return bool(getattr(profile, "entered", False)) and getattr(profile, "kineto_results", None) is None
