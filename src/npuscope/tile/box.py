"""Masks that are true inside a box: an interval of indices along each axis, which may differ between programs."""

from __future__ import annotations

import numpy as np

from npuscope.tile.affine import Affine, Base

Interval = tuple[Base, Base]


class Box:
    """True where `low <= index < high` holds along every axis in `bounds`; other axes are true all along.

    Bounds lie between 0 and the axis's length, but `high` may be below `low`: then nothing is true.
    """

    __slots__ = ("shape", "bounds")

    def __init__(self, shape: tuple[int, ...], bounds: dict[int, Interval]) -> None:
        self.shape = shape
        self.bounds = bounds

    def dense(self) -> np.ndarray:
        """The mask as an array, of length 1 along axes on which it does not change."""
        rank = len(self.shape)
        result = np.ones((1,) * (rank + 1), np.bool_)
        for axis, (low, high) in self.bounds.items():
            index = np.arange(self.shape[axis]).reshape((1,) + (1,) * axis + (-1,) + (1,) * (rank - axis - 1))
            column = (-1,) + (1,) * rank
            result = result & (index >= np.asarray(low).reshape(column)) & (index < np.asarray(high).reshape(column))
        return result

    @property
    def full(self) -> bool:
        """Whether it is true everywhere in every program."""
        return all(
            np.max(low) <= 0 and np.min(high) >= self.shape[axis] for axis, (low, high) in self.bounds.items()
        )

    def limits(self) -> list[Interval]:
        """(low, high) for every axis."""
        return [self.bounds.get(axis, (0, count)) for axis, count in enumerate(self.shape)]


def everywhere(shape: tuple[int, ...]) -> Box:
    """A mask that is true everywhere."""
    return Box(shape, {})


def both(one: Box, other: Box) -> Box:
    """True where both are."""
    if not one.bounds:
        return other
    bounds = dict(one.bounds)
    for axis, (low, high) in other.bounds.items():
        known = bounds.get(axis)
        if known is not None:
            low, high = _largest(low, known[0]), _smallest(high, known[1])
        bounds[axis] = (low, high)
    return Box(one.shape, bounds)


def programs(holds: np.ndarray, shape: tuple[int, ...]) -> Box:
    """True all over the tile in the programs in which `holds` (one truth value each, or one for all)."""
    if holds.size == 1:
        return Box(shape, {} if holds.reshape(-1)[0] else {0: (0, 0)})
    return Box(shape, {0: (0, np.where(holds.reshape(-1), shape[0], 0))})


def below(value: Affine, strict: bool) -> Box | np.ndarray | None:
    """Where `value` < 0 (or <= 0): a box when it changes along one axis at most, None otherwise."""
    moving = [axis for axis, stride in enumerate(value.strides) if stride and value.shape[axis] > 1]
    limit = 0 if strict else 1  # value < limit
    if not moving:
        holds = np.asarray(value.base < limit).reshape(-1)
        return programs(holds, value.shape) if value.shape else holds
    if len(moving) > 1:
        return None
    axis = moving[0]
    stride, count = value.strides[axis], value.shape[axis]
    if stride > 0:  # base + stride * index < limit: the first ones
        return Box(value.shape, {axis: (0, _clip(-((value.base - limit) // stride), count))})
    # base - step * index < limit: from the first index above (base - limit) / step on
    return Box(value.shape, {axis: (_clip((value.base - limit) // -stride + 1, count), count)})


def _clip(value: Base, count: int) -> Base:
    if isinstance(value, int):
        return min(max(value, 0), count)
    clipped: np.ndarray = np.clip(value, 0, count)
    return clipped


def _largest(one: Base, other: Base) -> Base:
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    return np.maximum(one, other)


def _smallest(one: Base, other: Base) -> Base:
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other)
    return np.minimum(one, other)
