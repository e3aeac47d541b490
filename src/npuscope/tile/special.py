"""Functions that numpy lacks."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

_REACH = 6.0
_STEPS = 8192


@lru_cache(maxsize=1)
def _table() -> tuple[np.ndarray, np.ndarray]:
    """erf and its slope at evenly spaced places from 0 to 6, beyond which erf is 1."""
    places = np.linspace(0.0, _REACH, _STEPS + 1)
    return np.array([math.erf(place) for place in places]), 2.0 / math.sqrt(math.pi) * np.exp(-places * places)


def erf(value: np.ndarray) -> np.ndarray:
    """The error function, by its Taylor series about the nearest of 8,193 places (error below 1e-14)."""
    heights, slopes = _table()
    wide = value.astype(np.float64)
    size = np.minimum(np.abs(wide), _REACH)
    nearest = np.rint(np.nan_to_num(size) * (_STEPS / _REACH)).astype(np.int64)
    place = nearest * (_REACH / _STEPS)
    step = size - place
    series = 1.0 + step * (-place + step * ((2.0 * place * place - 1.0) / 3.0))
    return np.copysign(heights[nearest] + slopes[nearest] * step * series, wide).astype(value.dtype)
