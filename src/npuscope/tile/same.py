"""Stores that change nothing, and programs that store the same value in one place: races that do no harm."""

from __future__ import annotations

import numpy as np

from npuscope.tile.region import Region
from npuscope.trace.schema import AGREES, REWRITES

Blocks = list[tuple[tuple[slice, ...], np.ndarray]]
"""Where in the tile array a piece stands, and the memory there."""


class Same:
    """Knows where a launch has stored so far, so that values are compared only where stores meet."""

    def __init__(self) -> None:
        self._reached: dict[int, tuple[int, int]] = {}

    def meets(self, storage: int, low: int, high: int) -> bool:
        """Whether an earlier store reached into these bytes; from now on this one counts among them."""
        known = self._reached.get(storage)
        if known is None:
            self._reached[storage] = low, high
            return False
        self._reached[storage] = min(low, known[0]), max(high, known[1])
        return low < known[1] and known[0] < high


def apart(region: Region) -> bool:
    """Whether the programs' blocks cannot overlap."""
    if region.first.size < 2:
        return True
    span = int((region.high - region.low).max())
    return bool((np.diff(np.sort(region.low)) >= span).all())


def equal(pieces: Blocks, whole: np.ndarray) -> np.ndarray:
    """Which programs have in memory what they store, bit by bit."""
    found = np.ones(whole.shape[0], np.bool_)
    for place, memory in pieces:
        kind = f"i{memory.dtype.itemsize}"
        alike = memory.view(kind) == whole[place].astype(memory.dtype, copy=False).view(kind)
        found[place[0]] = alike.all(axis=tuple(range(1, alike.ndim)))
    return found


def equal_lanes(found: np.ndarray, values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The same for single lanes: 1-D `found` and `values` of the lanes that are true in `chosen`, (programs, ...)."""
    kind = f"i{found.dtype.itemsize}"
    different = found.view(kind) != np.ascontiguousarray(values).astype(found.dtype, copy=False).view(kind)
    programs = np.nonzero(chosen)[0]
    result: np.ndarray = np.bincount(programs, different, chosen.shape[0]) == 0
    return result


def bits(rewrites: np.ndarray | None, agrees: np.ndarray | None, count: int) -> np.ndarray:
    """The bits for the trace: nothing was stored there before (None), nobody else stores there (None)."""
    result = np.zeros(count, np.int64)
    if rewrites is not None:
        result |= np.where(rewrites, REWRITES, 0)
    result |= AGREES if agrees is None else np.where(agrees, AGREES, 0)
    return result

