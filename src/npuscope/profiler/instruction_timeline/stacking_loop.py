"""The compiled loop behind npuscope.profiler.instruction_timeline.stacking."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import outer


@outer
def stack(group: np.ndarray, start: np.ndarray, end: np.ndarray, rows: np.ndarray, until: np.ndarray) -> None:
    """Fill `rows` with the first free row of each slice; slices come sorted by group, then start. `until` is room for
    as many numbers."""
    used = 0
    for at in range(group.size):
        if at and group[at] != group[at - 1]:
            used = 0
        row = 0
        while row < used and until[row] > start[at]:
            row += 1
        if row == used:
            used += 1
        until[row] = end[at]
        rows[at] = row
