"""Slices of one lane that overlap, put side by side."""

from __future__ import annotations

import numpy as np


def stacked(group: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The row of each slice within its group, from 0: the first where it overlaps none that begins earlier,
    (slices,) int64. Arguments are (slices,) int64; a slice that ends when another begins does not overlap it."""
    from npuscope.profiler.instruction_timeline.stacking_loop import stack

    order = np.lexsort((end, start, group))
    rows = np.empty(order.size, np.int64)
    found = np.empty_like(rows)
    stack(group[order], start[order], end[order], found, np.empty_like(rows))
    rows[order] = found
    return rows
