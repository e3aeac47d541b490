"""One file per MLIR dialect; each holds `LOWERINGS`, from operation name to the function that writes it.

``"<dialect>.*"`` stands for every operation of a dialect that is not listed by name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op

Lowering = Callable[["Writer", "Op"], None]


@lru_cache(maxsize=1)
def lowerings() -> dict[str, Lowering]:
    """All lowerings by operation name, from every file of this folder."""
    table: dict[str, Lowering] = {}
    for module in pkgutil.iter_modules(__path__):
        table.update(importlib.import_module(f"{__name__}.{module.name}").LOWERINGS)
    return table
