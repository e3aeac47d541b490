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
from npuscope.frontends.imports import after_import
from npuscope.frontends.launch import Session
from npuscope.frontends.stack import user_stack

SUPPORTED = ((3, 8), (3, 10))
"""Triton versions at least the first and below the second."""

NAME = "triton"
PACKAGE = "triton"
"""What a script imports to use this DSL."""


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
    after_import(PACKAGE, lambda package: _hook(session))


def _hook(session: Session) -> None:
    check_version()
    os.environ.pop("TRITON_INTERPRET", None)
    from triton.backends import Backend, backends
    from triton.runtime.driver import driver

    from npuscope.frontends.triton_backend import NAME as BACKEND
    from npuscope.frontends.triton_backend import Compiler, driver_class
    from npuscope.frontends.triton_launch import Launches

    package = os.path.dirname(os.path.abspath(sys.modules["triton"].__file__ or ""))
    launches = Launches(session, package, lambda: next(iter(user_stack(package)), None))

    def launch(source: Any, text: bytes, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
        launches.launch(source, text, grid, arguments)

    chosen = driver_class(launch)
    backends.clear()
    backends[BACKEND] = Backend(Compiler, chosen)
    driver.set_active(chosen())
