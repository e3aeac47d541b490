"""One module a DSL: how its launches are caught, how its arguments bind, how its IR is obtained.

A module with a function ``install(session)`` and a name ``NAME`` is a front end; :func:`install_all` finds them by
listing this folder. Their DSL packages are optional and imported when hooked.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def front_ends() -> list[Any]:
    """The modules of this folder that are front ends."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return [module for module in modules if hasattr(module, "install") and hasattr(module, "NAME")]


def install_all(session: Any) -> list[str]:
    """Hook every front end whose DSL is installed; returns their names."""
    names = []
    for module in front_ends():
        if module.available():
            module.install(session)
            names.append(module.NAME)
    return names
