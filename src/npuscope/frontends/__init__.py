"""One module a DSL: how its launches are caught, how its arguments bind, how its IR is obtained.

A module with a function ``install(session)``, a name ``NAME`` and the ``PACKAGE`` that scripts import is a front end;
:func:`install_all` finds them by listing this folder. DSL packages are optional: a front end acts when a script
imports its package.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def front_ends() -> list[Any]:
    """The modules of this folder that are front ends. A name with an underscore is a part of one, and not imported."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if "_" not in found.name]
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    return [module for module in modules if hasattr(module, "install") and hasattr(module, "PACKAGE")]


def install_all(session: Any) -> None:
    """Hook every front end into this process."""
    from npuscope.frontends.torch_npu import alias_npu
    from npuscope.mstx.module import supply_mstx

    alias_npu(session.notice)
    supply_mstx(session.ranges)
    for module in front_ends():
        module.install(session)


def packages() -> tuple[str, ...]:
    """What a process imports before it can launch a kernel or put a tensor on a simulated device."""
    return (*(module.PACKAGE for module in front_ends()), "torch", "torch_npu", "mstx")


def extra_for(package: str) -> str | None:
    """The name of the optional extra that installs the DSL which scripts import as `package`."""
    return next((module.NAME for module in front_ends() if package == module.PACKAGE), None)
