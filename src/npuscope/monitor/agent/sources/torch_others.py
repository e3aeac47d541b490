"""Other users of PyTorch's profiler in this process: two at a time end the process, so ours makes way.

The job's own `torch.profiler` is noticed when it prepares, which it does before anything is recorded. Once somebody has
looked, PyTorch's method stays wrapped: to look at every object of the process again and again would cost more.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

_seen: weakref.WeakSet[Any] = weakref.WeakSet()
_makers_of_way: list[Callable[[], None]] = []


def watch(make_way: Callable[[], None]) -> None:
    """Have `make_way` called before another profiler begins, on that one's thread."""
    kind = sys.modules["torch.autograd.profiler"].profile
    if not hasattr(kind._prepare_trace, "_npuscope"):
        _wrap(kind)
        # One that prepared before we came leaves no other sign.
        _seen.update(one for one in gc.get_objects() if type(one) is kind and at_work(one))
    if make_way not in _makers_of_way:
        _makers_of_way.append(make_way)


def release(make_way: Callable[[], None]) -> None:
    """Have it called no more."""
    if make_way in _makers_of_way:
        _makers_of_way.remove(make_way)


def others_at_work() -> bool:
    """Whether another profiler has begun, or prepares to, and has not ended."""
    return any(at_work(one) for one in list(_seen))


def at_work(profile: Any) -> bool:
    """Whether a profile has been entered and has no result yet."""
    return bool(getattr(profile, "entered", False)) and getattr(profile, "kineto_results", None) is None


def _wrap(kind: Any) -> None:
    prepare = kind._prepare_trace

    @functools.wraps(prepare)
    def _prepare_trace(profile: Any) -> Any:
        _seen.add(profile)
        profile.entered = True  # as the method itself says at once; nobody may begin between the two
        for make_way in tuple(_makers_of_way):
            make_way()
        return prepare(profile)

    _prepare_trace._npuscope = True  # type: ignore[attr-defined]
    kind._prepare_trace = _prepare_trace
