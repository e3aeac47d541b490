"""Other recorders that are about to begin in this process: ours makes way for them.

Once somebody has asked, PyTorch's own two functions stay wrapped, for a job may hold on to either.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

BEGINNINGS = {
    "_enable_profiler": ("torch._C._autograd", "torch.autograd", "torch.autograd.profiler"),
    "_enable_profiler_legacy": ("torch._C._autograd", "torch.autograd", "torch.autograd.profiler_legacy"),
}
"""What every recorder of PyTorch begins with, and the modules through which it is called."""
_makers_of_way: list[Callable[[], None]] = []


def watch(make_way: Callable[[], None]) -> None:
    """Have `make_way` called before another recorder begins, on that one's thread."""
    for name, modules in BEGINNINGS.items():
        for module in modules:
            _wrap(sys.modules.get(module), name)
    if make_way not in _makers_of_way:
        _makers_of_way.append(make_way)


def release(make_way: Callable[[], None]) -> None:
    """Have it called no more."""
    if make_way in _makers_of_way:
        _makers_of_way.remove(make_way)


def original(name: str) -> Any:
    """PyTorch's own function, for our use."""
    function = getattr(sys.modules["torch"]._C._autograd, name)
    return getattr(function, "_npuscope", function)


def _wrap(module: Any, name: str) -> None:
    begin = getattr(module, name, None)
    if begin is None or hasattr(begin, "_npuscope"):
        return

    @functools.wraps(begin)
    def wrapped(*words: Any, **named: Any) -> Any:
        for make_way in tuple(_makers_of_way):
            make_way()
        return begin(*words, **named)

    wrapped._npuscope = begin  # type: ignore[attr-defined]
    setattr(module, name, wrapped)
