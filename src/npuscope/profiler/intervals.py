"""Time that intervals cover: a cycle that several of them share counts once."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import outer


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
    _cover(order, start, end, kind, core, first, groups, total, until)
    return total


@outer
def _cover(
    order: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    kind: np.ndarray,
    core: np.ndarray,
    first: np.ndarray,
    groups: np.ndarray,
    total: np.ndarray,
    until: np.ndarray,
) -> None:
    """Add to `total`; `until` is how far each group has been counted on each core."""
    for place in range(order.size):
        index = order[place]
        one = core[index]
        for owner in range(first[kind[index]], first[kind[index] + 1]):
            group = groups[owner]
            begin = start[index] if start[index] > until[group, one] else until[group, one]
            if end[index] > begin:
                total[group, one] += end[index] - begin
                until[group, one] = end[index]
