"""How much of what a vector instruction can do is done (opprof.md 3.9)."""

from __future__ import annotations

import numpy as np

from npuscope.profiler.element_types import element_bytes
from npuscope.trace.timeline import Lane, Timeline

FULL = 255 * 8 * 32
"""Bytes of a full vector instruction: 255 repeats of 8 blocks of 32 bytes."""


def vector_utilisation(timeline: Timeline) -> np.ndarray:
    """Useful bytes of each vector slice as a share of a full instruction's, 0..100, (slices,) float64. NaN for other
    slices, and where the type of the elements is not known."""
    size = np.array([_size(step.dtype, step.lane) for step in timeline.steps] or [np.nan])
    work = timeline.slice("work")
    if not work.size:
        return np.zeros(0)
    share = np.minimum(100.0 * work * size[timeline.slice("step")] / FULL, 100.0)
    return np.where((work > 0) & (timeline.slice("lane") == Lane.VECTOR), share, np.nan)


def _size(dtype: str, lane: Lane) -> float:
    return element_bytes(dtype) if lane is Lane.VECTOR else np.nan
