"""Time that intervals cover: a cycle that several of them share counts once."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def covered(
    order: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    kind: np.ndarray,
    core: np.ndarray,
    first: np.ndarray,
    groups: np.ndarray,
    shape: tuple[int, int],
) -> np.ndarray:
    """Cycles of each group on each core in which at least one of its intervals lies, `shape` (groups, cores), int64.

    Interval i runs from ``start[i]`` to ``end[i]`` on ``core[i]`` and belongs to each group of
    ``groups[first[k]:first[k + 1]]`` where k is ``kind[i]``; `order` holds the intervals by their start.
    """
    total = np.zeros(shape, np.int64)
    until = np.full(shape, np.iinfo(np.int64).min, np.int64)
    for index in order:
        one = core[index]
        for place in range(first[kind[index]], first[kind[index] + 1]):
            group = groups[place]
            begin = max(start[index], until[group, one])
            if end[index] > begin:
                total[group, one] += end[index] - begin
                until[group, one] = end[index]
    return total
