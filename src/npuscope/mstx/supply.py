"""Gives modules that are not installed: ``import NAME`` finds what was made here."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence

Make = Callable[[str], types.ModuleType]
"""Makes the module of a (dotted) name."""


def supply(name: str, make: Make, *, first: bool = False, when: Callable[[], bool] = lambda: True) -> None:
    """Let ``import name`` give `make(name)`: where no such module is installed, or with `first` in any case, as long as
    `when` says so. The one that was supplied before under that name is forgotten."""
    withdraw(name)
    sys.meta_path.insert(0 if first else len(sys.meta_path), _Supply(name, make, when))


def withdraw(name: str) -> None:
    """Supply the module no longer."""
    loaded = sys.modules.get(name)
    if loaded is not None and isinstance(getattr(loaded.__spec__, "loader", None), _Supply):
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not (isinstance(finder, _Supply) and finder.name == name)]


def supplied(name: str) -> bool:
    """Whether the module is supplied, imported already or not."""
    return any(isinstance(finder, _Supply) and finder.name == name for finder in sys.meta_path)


class _Supply(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and is its loader."""

    def __init__(self, name: str, make: Make, when: Callable[[], bool]) -> None:
        self.name = name
        self.make = make
        self.when = when

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of this one module. A part of a package is given where the package is."""
        if name != self.name or not self.when() or not _is_given(name.rpartition(".")[0]):
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The module, complete."""
        return self.make(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def _is_given(package: str) -> bool:
    """Whether a package that has been imported is one of those supplied; no package (a top-level module) counts."""
    loaded = sys.modules.get(package)
    return not package or isinstance(getattr(getattr(loaded, "__spec__", None), "loader", None), _Supply)
