"""Lowering of tile dialects (Triton's): one file a dialect, each with `LOWERINGS` as in :mod:`npuscope.mlir.dialects`.

A value of the IR is a local of the generated function, an operation a call of a function of :mod:`npuscope.tile`, and
``m`` is the :class:`npuscope.tile.machine.Machine` on which the programs run.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from npuscope.mlir.tiles.calls import TileLowering


@lru_cache(maxsize=1)
def tile_lowerings() -> dict[str, TileLowering]:
    """All lowerings by operation name, from every file of this folder that has some."""
    table: dict[str, TileLowering] = {}
    for found in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{found.name}")
        table.update(getattr(module, "LOWERINGS", {}))
    return table
