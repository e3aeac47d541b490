"""The compiled loop behind npuscope.profiler.instruction_timeline.stacking."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def stack(group: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """First free row of each slice; slices come sorted by group, then start."""
    rows = np.empty(group.size, np.int64)
    until = np.empty(16, np.int64)
    used = 0
    for at in range(group.size):
        if at and group[at] != group[at - 1]:
            used = 0
        row = 0
        while row < used and until[row] > start[at]:
            row += 1
        if row == used:
            if used == until.size:
                until = np.append(until, np.empty(used, np.int64))
            used += 1
        until[row] = end[at]
        rows[at] = row
    return rows
