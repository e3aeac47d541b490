"""Acts right after the user's script imports a package, so that nothing is imported that the script does not use."""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

COUNTS = "triton"
"""A package whose bindings complain when the process ends with objects of theirs that were never collected."""

Action = Callable[[types.ModuleType], None]


def after_import(name: str, action: Action) -> None:
    """Call `action(module)` when top-level package `name` has been imported; at once if it is there already."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    _finder().actions[name] = action


def before_import(name: str, action: Callable[[], None]) -> None:
    """Call `action()` when top-level package `name` is about to be imported; at once if it is there already."""
    if name in sys.modules:
        action()
        return
    _finder().early[name] = action


def stand_in(name: str) -> None:
    """Let ``import name`` give an empty module where no such package is installed."""
    _finder().stand_ins.add(name)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.actions: dict[str, Action] = {}
        self.early: dict[str, Callable[[], None]] = {}
        self.stand_ins: set[str] = set()
        self._busy = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that the other finders give, its loader wrapped when something waits for the module."""
        if name in self.early and not self._busy:
            self.early.pop(name)()
        if self._busy or (name not in self.actions and name not in self.stand_ins):
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None:
            return importlib.machinery.ModuleSpec(name, _Empty()) if name in self.stand_ins else None
        if name in self.actions and spec.loader is not None:
            spec.loader = _Acting(spec.loader, self.actions[name])
        return spec


def _finder() -> _Finder:
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    made = _Finder()
    sys.meta_path.insert(0, made)
    return made


class _Empty(importlib.abc.Loader):
    """A module with nothing in it."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


class _Acting(importlib.abc.Loader):
    """The real loader, followed by the action."""

    def __init__(self, loader: Any, action: Action) -> None:
        self.loader = loader
        self.action = action

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """As the real loader does."""
        module: types.ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Load, then act. A large package makes many objects and drops none, so that collecting meanwhile is a waste,
        an eighth of the time that torch takes; looking at them while the script runs is another."""
        collects = gc.isenabled()
        gc.disable()
        try:
            self.loader.exec_module(module)
            self.action(module)
        finally:
            if collects:
                if COUNTS not in sys.modules:
                    gc.freeze()
                gc.enable()
