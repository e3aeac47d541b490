"""Reductions and scans along one axis of a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.tile.shapes import Shape, whole

Combine = Callable[..., tuple[np.ndarray, ...]]
"""Takes the left values and then the right values, returns the combined ones."""


def reduce_with(ufunc: np.ufunc, axis: int, shape: Shape, value: Any) -> np.ndarray:
    """The reduction by a numpy function. Sums and products of narrow floats are made half by half, as lanes of a device
    make them: one after the other, they would soon no longer grow."""
    array = whole(shape, value)
    if array.dtype.itemsize < 4 and array.dtype.kind not in "iub" and ufunc in (np.add, np.multiply):
        return _by_halves(ufunc, axis + 1, array)
    result: np.ndarray = ufunc.reduce(array, axis=axis + 1, dtype=array.dtype)
    return result


def _by_halves(ufunc: np.ufunc, axis: int, array: np.ndarray) -> np.ndarray:
    before = (slice(None),) * axis
    while array.shape[axis] > 1:
        half = array.shape[axis] // 2
        rest = array[(*before, slice(2 * half, None))]
        array = ufunc(array[(*before, slice(half))], array[(*before, slice(half, 2 * half))])
        if rest.shape[axis]:
            array = np.concatenate((array, rest), axis)
    result: np.ndarray = np.squeeze(array, axis)
    return result


def reduce_by(combine: Combine, axis: int, shape: Shape, *values: Any) -> Any:
    """The reduction by any associative function, neighbours first, so that the order is kept."""
    parts = _together(shape, values)
    while parts[0].shape[axis + 1] > 1:
        length = parts[0].shape[axis + 1]
        paired = length - length % 2
        left = [_part(part, axis, 0, paired, 2) for part in parts]
        right = [_part(part, axis, 1, paired, 2) for part in parts]
        combined = [np.broadcast_to(part, left[0].shape) for part in combine(*left, *right)]
        if length % 2:
            rest = [_part(part, axis, length - 1, length) for part in parts]
            combined = [np.concatenate(pair, axis + 1) for pair in zip(combined, rest, strict=True)]
        parts = combined
    results = tuple(np.squeeze(part, axis + 1) for part in parts)
    return results if len(results) > 1 else results[0]


def scan_with(ufunc: np.ufunc, axis: int, reverse: bool, shape: Shape, value: Any) -> np.ndarray:
    """The running reduction by a numpy function, from the far end when `reverse`."""
    array = whole(shape, value)
    if reverse:
        array = np.flip(array, axis + 1)
    result: np.ndarray = ufunc.accumulate(array, axis=axis + 1, dtype=array.dtype)
    return np.flip(result, axis + 1) if reverse else result


def scan_by(combine: Combine, axis: int, reverse: bool, shape: Shape, *values: Any) -> Any:
    """The running reduction by any associative function, in steps of doubling distance."""
    parts = [np.flip(part, axis + 1) if reverse else part for part in _together(shape, values)]
    parts = [np.array(part) for part in parts]
    distance, length = 1, shape[axis]
    while distance < length:
        left = [_part(part, axis, 0, length - distance) for part in parts]
        right = [_part(part, axis, distance, length) for part in parts]
        combined = [np.broadcast_to(part, left[0].shape) for part in combine(*left, *right)]
        parts = [
            np.concatenate([_part(part, axis, 0, distance), one], axis + 1)
            for part, one in zip(parts, combined, strict=True)
        ]
        distance *= 2
    results = tuple(np.flip(part, axis + 1) if reverse else part for part in parts)
    return results if len(results) > 1 else results[0]


def _together(shape: Shape, values: tuple[Any, ...]) -> list[np.ndarray]:
    arrays = [whole(shape, value) for value in values]
    programs = max(array.shape[0] for array in arrays)
    return [np.broadcast_to(array, (programs, *shape)) for array in arrays]


def _part(array: np.ndarray, axis: int, begin: int, end: int, step: int = 1) -> np.ndarray:
    return array[(slice(None),) * (axis + 1) + (slice(begin, end, step),)]


def histogram(bins: int, shape: Shape, value: Any, mask: Any = None) -> np.ndarray:
    """How often each of the numbers 0 to `bins` - 1 comes up in a tile; others are not counted."""
    array = whole(shape, value)
    counted = (array >= 0) & (array < bins)
    if mask is not None:
        counted = counted & whole(shape, mask)
    programs = max(array.shape[0], counted.shape[0])
    rows = np.broadcast_to(np.arange(programs).reshape((-1,) + (1,) * len(shape)), counted.shape)
    keys = rows[counted] * bins + np.broadcast_to(array, counted.shape)[counted]
    return np.bincount(keys, minlength=programs * bins).reshape(programs, bins).astype(np.int32)
