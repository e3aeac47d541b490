"""Triton: catches the launches of `@triton.jit` kernels and runs the IR that Triton itself produces.

An out-of-tree backend takes the place of Triton's own (frontends.md 4), so that autotuning, heuristics, callable grids
and Triton's caches work as they are.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from typing import Any

from npuscope.errors import UserError
from npuscope.frontends.imports import after_import, before_import
from npuscope.frontends.launch import Session
from npuscope.frontends.stack import user_stack

SUPPORTED = ((3, 8), (3, 10))
"""Triton versions at least the first and below the second."""

NAME = "triton"
PACKAGE = "triton"
"""What a script imports to use this DSL."""

INTERPRET = "TRITON_INTERPRET"
"""Environment variable that makes Triton run kernels with its own interpreter."""


def check_version() -> None:
    """Raise UserError when the installed Triton is not one that this front end knows."""
    try:
        found = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    parts = tuple(int(number) for number in re.findall(r"\d+", found)[:2])
    if not SUPPORTED[0] <= parts < SUPPORTED[1]:
        low, high = (".".join(map(str, version)) for version in SUPPORTED)
        raise UserError(f"triton {found} is not supported (needs >={low},<{high}): pip install 'npuscope[triton]'")


def install(session: Session) -> None:
    """Make every later Triton launch of this process run here; nothing happens until the script imports Triton."""
    before_import(PACKAGE, lambda: _prepare(session))
    after_import(PACKAGE, lambda package: _hook(session))


def _prepare(session: Session) -> None:
    """Before Triton is imported: the interpreter would take its own library's functions while they are defined."""
    check_version()
    if os.environ.pop(INTERPRET, "").lower() in ("1", "true", "on", "yes", "y"):
        session.notice(f"{INTERPRET}=1 is ignored: kernels run here, not in Triton's interpreter")


def _hook(session: Session) -> None:
    from triton import knobs
    from triton.backends import Backend, backends
    from triton.runtime.driver import driver

    from npuscope.frontends import triton_cache, triton_seams
    from npuscope.frontends.torch_cuda import alias_cuda
    from npuscope.frontends.triton_backend import NAME as BACKEND
    from npuscope.frontends.triton_backend import Compiler, driver_class
    from npuscope.frontends.triton_launch import Launches
    from npuscope.mlir.tiles import tile_lowerings

    tile_lowerings()  # a kernel from the cache needs their modules too; better now than in the middle of a launch
    package = os.path.dirname(os.path.abspath(sys.modules["triton"].__file__ or ""))
    launches = Launches(session, package, lambda: next(iter(user_stack(package)), None))

    def launch(source: Any, text: bytes, grid: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
        launches.launch(source, text, grid, arguments)

    knobs.runtime.__dict__["interpret"] = False  # whatever the script says to the environment later
    alias_cuda(session.notice)
    triton_cache.install(package, session.notice)
    triton_seams.install(session)
    chosen = driver_class(launch)
    backends.clear()
    backends[BACKEND] = Backend(Compiler, chosen)
    driver.set_active(chosen())
