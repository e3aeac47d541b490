"""The one place where the two methods of `torch.profiler.record_function` are wrapped, and only while we collect."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any

Note = Callable[[Any], None]


class RangeHook:
    """Tells of ranges, and keeps those of one thread out of PyTorch's profiler.

    A range that is open while one window is closed and the next is opened would, when it ends, write into memory that
    PyTorch has freed. Most jobs have one open at every step, because optimizers open one around their steps. So while
    a window of ours is open, PyTorch begins ranges of its thread as if nobody recorded; we hear of them here.
    """

    def __init__(self) -> None:
        self.entered: Note | None = None
        """Called with each range that begins, on its thread."""
        self.left: Note | None = None
        """Called with each range that ends."""
        self.shielded = 0
        """The thread whose ranges stay out of the profiler."""
        self._users = 0
        self._restore: Callable[[], None] | None = None

    def install(self) -> None:
        """Wrap. To be called as often as `remove`."""
        self._users += 1
        if self._restore is None:
            self._restore = self._wrap(sys.modules["torch.autograd.profiler"].record_function)

    def remove(self) -> None:
        """Give PyTorch its methods back, when nobody needs the hook any more."""
        self._users -= 1
        if not self._users and self._restore is not None:
            self._restore()
            self._restore = None

    def _wrap(self, owner: Any) -> Callable[[], None]:
        """Returns what undoes it. The wrappers keep PyTorch's own methods reachable (`__wrapped__`), because
        TorchScript reads their source."""
        enter, leave = owner.__enter__, owner.__exit__
        record = sys.modules["torch"]._C._autograd._enable_record_function

        @functools.wraps(enter)
        def __enter__(one: Any) -> Any:
            if self.entered is not None:
                self.entered(one)
            if self.shielded != get_ident():
                return enter(one)
            record(False)
            try:
                return enter(one)
            finally:
                record(True)

        @functools.wraps(leave)
        def __exit__(one: Any, *reason: Any) -> Any:
            try:
                return leave(one, *reason)
            finally:
                if self.left is not None:
                    self.left(one)

        def restore() -> None:
            # Whoever has wrapped ours meanwhile keeps it; it then only calls through.
            if owner.__enter__ is __enter__:
                owner.__enter__ = enter
            if owner.__exit__ is __exit__:
                owner.__exit__ = leave

        owner.__enter__, owner.__exit__ = __enter__, __exit__
        return restore


HOOK = RangeHook()
