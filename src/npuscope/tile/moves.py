"""By how much addresses move from program to program and from lane to lane, where that is always the same."""

from __future__ import annotations

import numpy as np


def moves(address: np.ndarray, chosen: np.ndarray, width: int) -> list[int]:
    """Elements of `width` bytes from one to the next along the programs and along each axis of the tile.

    0 where addresses do not move evenly, or not at all, or not by whole elements. The programs that take part in
    `chosen` are looked at.
    """
    rows = np.flatnonzero(chosen.reshape(chosen.shape[0], -1).any(axis=1))
    if address.shape[0] > 1 and chosen.shape[0] > 1:
        address = address[rows[0] : rows[-1] + 1]
    return [_step(address, axis, width) for axis in range(address.ndim)]


def _step(address: np.ndarray, axis: int, width: int) -> int:
    if address.shape[axis] < 2:
        return 0
    steps = np.diff(address, axis=axis)
    first = int(steps.flat[0])
    return first // width if first % width == 0 and bool((steps == first).all()) else 0
