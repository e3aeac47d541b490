"""Labelled ranges of the host: the vendor's ``mstx`` module as far as a script uses it to say what it is doing.

The vendor's own module needs a library that exists on machines with a card only, so a script under npuscope gets this
one: ``range_start(message, stream=None, domain="default")`` gives a number from 1 on, ``range_end(number)`` ends that
range, ``mark(message)`` has no length and so holds no launch.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

NAME = "mstx"
DEFAULT_DOMAIN = "default"


class Ranges:
    """The ranges of a process that are open."""

    def __init__(self) -> None:
        self._open: dict[int, str] = {}
        self._started = 0

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages of the open ranges, the outermost first."""
        return tuple(self._open.values())

    def start(self, message: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> int:
        """Open a range; returns its number, 0 for a message that is no text, as the vendor's module does."""
        if not isinstance(message, str) or not message:
            return 0
        self._started += 1
        self._open[self._started] = message
        return self._started

    def end(self, number: int, domain: str = DEFAULT_DOMAIN) -> None:
        """Close a range; a number that stands for none is let pass."""
        self._open.pop(number, None)

    @contextmanager
    def around(self, message: str, stream: Any = None, domain: str = DEFAULT_DOMAIN) -> Iterator[None]:
        """A range for a block or, as a decorator, for each call of a function."""
        number = self.start(message, stream, domain)
        try:
            yield
        finally:
            self.end(number, domain)


def supply_mstx(ranges: Ranges) -> None:
    """Let ``import mstx`` give a module whose ranges are `ranges`; as does ``torch.npu.mstx``, once that is there."""
    module = _module(ranges)
    sys.modules.pop(NAME, None)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Supply)]
    sys.meta_path.insert(0, _Supply(module))


def attach_mstx(npu: Any) -> None:
    """Give ``torch.npu`` its ``mstx``."""
    supply = next((finder for finder in sys.meta_path if isinstance(finder, _Supply)), None)
    if supply is not None:
        npu.mstx = supply.module


def _module(ranges: Ranges) -> types.ModuleType:
    module: Any = types.ModuleType(NAME, "Ranges of a script that npuscope runs.")
    module.range_start, module.range_end, module.mstx_range = ranges.start, ranges.end, ranges.around
    module.mark = lambda message, stream=None, domain=DEFAULT_DOMAIN: None
    return module


class _Supply(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module, and is its loader."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of ``mstx`` only."""
        return importlib.machinery.ModuleSpec(name, self) if name == NAME else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The module is there already."""
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""
