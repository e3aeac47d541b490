"""How much of what a vector instruction can do is done (opprof.md 3.9)."""

from __future__ import annotations

import numpy as np

from npuscope.trace.timeline import Lane, Timeline

FULL = 255 * 8 * 32
"""Bytes of a full vector instruction: 255 repeats of 8 blocks of 32 bytes."""

SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "half": 2, "bfloat16": 2, "bf16": 2, "float32": 4, "float": 4, "float64": 8, "double": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "fp8_e4m3fn": 1, "fp8_e5m2": 1, "hifloat8": 1, "fp8_e8m0": 1,
    "complex32": 4, "complex64": 8,
}
"""Bytes of one element by the names that steps use."""


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
    return SIZES.get(dtype, np.nan) if lane is Lane.VECTOR else np.nan
