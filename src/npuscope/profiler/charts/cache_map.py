"""The map of the L2 cache: what became of each of its lines, and whose instructions touched it (opprof.md 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.trace.timeline import LINE_COLUMNS, Timeline


@dataclass(frozen=True, slots=True)
class CacheMap:
    """One row for each line that was touched, addresses ascending; arrays are (lines,) int64.

    `address` is that of a line's first byte in GM, `size` the bytes of a line. `touched` is (2, pairs): the row of a
    line and the step of an instruction that touched it, sorted by row, with `first` (lines + 1,) where each row's pairs
    begin; `pair_hits` and `pair_misses` are theirs.
    """

    size: int
    address: np.ndarray
    hits: np.ndarray
    misses: np.ndarray
    touched: np.ndarray
    first: np.ndarray
    pair_hits: np.ndarray
    pair_misses: np.ndarray

    def steps(self, row: int) -> np.ndarray:
        """The steps that touched a line, ascending."""
        return np.asarray(self.touched[1, self.first[row] : self.first[row + 1]])

    def rate(self) -> np.ndarray:
        """Share of each line's accesses that hit, 0..100, (lines,) float64."""
        return np.asarray(100.0 * self.hits / np.maximum(self.hits + self.misses, 1))


def cache_map(timeline: Timeline, chip: Chip) -> CacheMap | None:
    """The map of a launch; None where the source of its times knows nothing of the cache."""
    known = timeline.lines[:, timeline.line("hits") >= 0]
    if not known.shape[1]:
        return None
    step, line = (known[LINE_COLUMNS.index(name)] for name in ("step", "line"))
    known = known[:, np.lexsort((step, line))]
    step, line, hits, misses = (known[LINE_COLUMNS.index(name)] for name in ("step", "line", "hits", "misses"))
    address, first, row = np.unique(line, return_index=True, return_inverse=True)
    begins = np.append(first, line.size).astype(np.int64)
    return CacheMap(
        chip.l2_line,
        address,
        np.add.reduceat(hits, first),
        np.add.reduceat(misses, first),
        np.stack([row.reshape(-1), step]).astype(np.int64),
        begins,
        hits,
        misses,
    )
