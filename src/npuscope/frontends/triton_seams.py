"""The few places where Triton itself must do something else: what arguments may be, what is timed, what is imported.

Each seam is one attribute of Triton and takes whatever arguments Triton gives it, so that a new minor version does not
break it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from npuscope.errors import UserError
from npuscope.frontends.launch import Session
from npuscope.frontends.triton_values import host_value
from npuscope.trace.schema import INSIDE_BLOCK

MILLISECONDS = 1.0
"""What every measurement says: nothing is timed here."""

GLUON = "triton.experimental.gluon"


def install(session: Session) -> None:
    """Change the seams of the Triton that has been imported."""
    from triton import testing
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    JITFunction.run = _run(JITFunction.run, session)
    Autotuner._bench = first_that_compiles
    testing.do_bench = testing.do_bench_cudagraph = run_once
    _specialise_without_gluon()
    _swear_by_blocks()


def _swear_by_blocks() -> None:
    """Let each use of a block pointer swear that the block lies inside the shape that the pointer was made with.

    Without a boundary check Triton takes that for granted, and the shape does not reach the IR. Newer Triton has no
    block pointers.
    """
    from triton.language import core

    pointer: Any = getattr(core, "_block_ptr", None)
    original = getattr(pointer, "_materialize", None)
    if original is None:
        return

    def materialize(self: Any, boundary_check: Any = (), _semantic: Any = None) -> Any:
        pointers, mask = original(self, boundary_check, _semantic=_semantic)
        _, inside = original(self, tuple(range(len(self.block_shape))), _semantic=_semantic)
        if mask is not None:
            inside = _semantic.or_(inside, _semantic.not_(mask))
        core.device_assert(inside, INSIDE_BLOCK, _semantic=_semantic)
        return pointers, mask

    pointer._materialize = materialize


def _run(original: Callable[..., Any], session: Session) -> Callable[..., Any]:
    """A kernel's launch: arrays that Triton does not know come in wrapped."""
    told = False

    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal told
        if self.is_gluon():
            raise UserError(f"{self.__name__} is a Gluon kernel; only kernels of triton.jit are supported")
        if not told and os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
            told = True
            session.notice("TRITON_INTERPRET=1 is ignored: kernels run here, not in Triton's interpreter")
        known: dict[int, Any] = {}
        names = self.arg_names
        values = [
            host_value(value, names[place] if place < len(names) else "", known)
            for place, value in enumerate(arguments)
        ]
        named = {name: value if name == "grid" else host_value(value, name, known) for name, value in named.items()}
        return original(self, *values, **named)

    return run


def first_that_compiles(self: Any, *arguments: Any, config: Any, **meta: Any) -> list[float]:
    """Stands for a measurement of the autotuner: of its configurations the first one that compiles is the fastest.

    Nothing runs. The configurations of one call come one after the other, with the same `self.nargs`.
    """
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources

    conflicts = meta.keys() & config.kwargs.keys()
    if conflicts:
        raise ValueError(f"Conflicting meta-parameters: {', '.join(conflicts)}.")
    if getattr(self, "_npuscope_tuned", None) is self.nargs:
        return [2 * MILLISECONDS] * 3
    current = {**meta, **config.all_kwargs()}
    if config.pre_hook:
        config.pre_hook({**self.nargs, **current})
    try:
        self.fn.run(*arguments, **{**current, "warmup": True})
    except (OutOfResources, CompileTimeAssertionFailure):
        return [float("inf")] * 3
    self._npuscope_tuned = self.nargs
    return [MILLISECONDS] * 3


def run_once(function: Callable[[], Any], *arguments: Any, **named: Any) -> Any:
    """Stands for `triton.testing.do_bench`: one run, and the time that every run takes here."""
    function()
    quantiles = named.get("quantiles")
    if quantiles is not None:
        return [MILLISECONDS] * len(quantiles) if len(quantiles) != 1 else MILLISECONDS
    return [MILLISECONDS] if named.get("return_mode") == "all" else MILLISECONDS


def _specialise_without_gluon() -> None:
    """Let Triton look at its first argument now, while its Gluon classes cannot be had.

    It imports them at that moment, once, to know them when it sees them: a quarter of a second for kernels that do not
    run here.
    """
    from triton.backends.compiler import BaseBackend
    from triton.runtime import jit

    if GLUON in sys.modules:
        return
    finder = _Nothing()
    sys.meta_path.insert(0, finder)
    try:
        with suppress(Exception):  # Triton then does it itself when it must
            jit.native_specialize_impl(BaseBackend, 1, False, False, False)
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.startswith(GLUON)]:
            del sys.modules[name]
        with suppress(AttributeError):
            del sys.modules["triton.experimental"].gluon


class _Nothing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives empty modules in the place of Gluon's, with classes of which there is no instance."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for Gluon's packages only."""
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith(GLUON) else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Every name of the module is a new class."""
        module.__dict__["__getattr__"] = lambda name: type(name, (), {})
