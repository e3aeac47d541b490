"""Numbers as tables show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
KILO, MEGA = 1024, 1024 * 1024


def microseconds(nanoseconds: Column) -> list[float]:
    """Lengths of time."""
    return np.round(nanoseconds / 1000, 3).tolist()


def moments(nanoseconds: Iterable[int]) -> list[str]:
    """Wall-clock times in microseconds: more digits than a float holds."""
    return [f"{time // 1000}.{time % 1000:03d}" for time in nanoseconds]


def sizes(numbers: Column, unit: int) -> list[float]:
    """Bytes in a larger unit."""
    return np.round(numbers / unit, 6).tolist()


def blank(values: Column) -> list[Any]:
    """Numbers, an empty cell for -1."""
    return ["" if value == -1 else value for value in values.tolist()]
