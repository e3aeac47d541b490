"""Promises that a kernel makes to the compiler about its numbers, held against the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from npuscope.tile.affine import Affine

HINTS = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}
"""Triton's function by the attribute that it leaves."""

Broken = tuple[str, np.ndarray]
"""What was found instead, and in which programs."""


def broken(name: str, values: tuple[int, ...], numbers: Any, step: int = 1) -> Iterator[Broken]:
    """The promises of one kind, a value for each axis, that do not hold. Consecutive numbers are `step` apart:
    addresses are those of bytes.

    `multiple_of` speaks of the first number of every run of consecutive ones; `max_contiguous` and `max_constancy` of
    groups of so many numbers.
    """
    array = numbers.wide() if isinstance(numbers, Affine) else numbers
    if isinstance(numbers, Affine):
        array = np.broadcast_to(array, (array.shape[0], *numbers.shape))
    for axis, value in enumerate(values[: max(array.ndim - 1, 1)]):
        if value <= 1:
            continue
        if name == "tt.divisibility":
            lanes = _starts(array, axis, step) & (array % value != 0)
        else:
            lanes = _uneven(array, axis, value, step if name == "tt.contiguity" else 0)
        if lanes.any():
            first = int(np.broadcast_to(array, lanes.shape)[lanes].reshape(-1)[0])
            yield _found(name, first), lanes.reshape(lanes.shape[0], -1).any(axis=1)


def _found(name: str, first: int) -> str:
    if name == "tt.divisibility":
        return f"{first} is among the numbers"
    return f"the run at {first} breaks off earlier"


def _starts(array: np.ndarray, axis: int, step: int) -> np.ndarray:
    """Where a run of consecutive numbers begins."""
    if array.ndim == 1:
        return np.ones(array.shape, np.bool_)
    first = np.ones(array.shape, np.bool_)
    later = (slice(None),) * (axis + 1)
    first[later + (slice(1, None),)] = np.diff(array, axis=axis + 1) != step
    return first


def _uneven(array: np.ndarray, axis: int, value: int, step: int) -> np.ndarray:
    """Numbers that do not follow the one before by `step`, inside groups of `value`."""
    if array.ndim == 1:
        return np.zeros(array.shape, np.bool_)
    wrong = np.zeros(array.shape, np.bool_)
    later = (slice(None),) * (axis + 1) + (slice(1, None),)
    index = np.arange(1, array.shape[axis + 1])
    inner = (index % value != 0).reshape((-1,) + (1,) * (array.ndim - axis - 2))
    wrong[later] = (np.diff(array, axis=axis + 1) != step) & inner
    return wrong
