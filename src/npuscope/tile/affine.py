"""Integers in a row: base + stride * index along each axis. Most addresses and masks of a kernel are made of these, and
what is known of them as a whole (the largest, the smallest, where they pass a bound) costs nothing to find out."""

from __future__ import annotations

from typing import Any

import numpy as np

Base = int | np.ndarray
"""One number for every program, or an int64 array with one for each."""

SIGNED: dict[int, np.dtype[Any]] = {bits: np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}


class Affine:
    """`base[program] + sum(strides[k] * index[k])` of `bits`-wide signed integers, over a tile of `shape`.

    A number without axes has the shape (). The values are known to fit their width.
    """

    __slots__ = ("base", "strides", "shape", "bits")

    def __init__(self, base: Base, strides: tuple[int, ...], shape: tuple[int, ...], bits: int) -> None:
        self.base = base
        self.strides = strides
        self.shape = shape
        self.bits = bits

    @property
    def uniform(self) -> bool:
        """Whether all programs hold the same."""
        return isinstance(self.base, int)

    @property
    def flat(self) -> bool:
        """Whether a program's tile holds one number everywhere."""
        return not any(self.strides)

    def span(self) -> tuple[int, int]:
        """How far the tile reaches below and above its base."""
        low = high = 0
        for stride, count in zip(self.strides, self.shape, strict=True):
            if stride < 0:
                low += stride * (count - 1)
            else:
                high += stride * (count - 1)
        return low, high

    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest number over all programs."""
        low, high = self.span()
        if isinstance(self.base, int):
            return self.base + low, self.base + high
        return int(self.base.min()) + low, int(self.base.max()) + high

    def dense(self) -> np.ndarray:
        """The numbers as an array of the width's type, of length 1 along axes on which they do not change."""
        return self.wide().astype(SIGNED[self.bits], copy=False)

    def wide(self) -> np.ndarray:
        """The numbers as an int64 array."""
        rank = len(self.shape)
        base = within_64_bits(self.base) if isinstance(self.base, int) else self.base
        total = np.asarray(base, np.int64).reshape((-1,) + (1,) * rank)
        for axis, (stride, count) in enumerate(zip(self.strides, self.shape, strict=True)):
            if stride and count > 1:
                steps = np.arange(count) * np.int64(within_64_bits(stride))
                total = total + steps.reshape((1,) + (1,) * axis + (count,) + (1,) * (rank - axis - 1))
        return total


def scalar(value: int, bits: int) -> Affine:
    """A number that every program holds."""
    return Affine(value, (), (), bits)


def add(one: Affine, other: Affine) -> Affine:
    """The sum; the caller looks at its extremes."""
    strides = tuple(map(int.__add__, one.strides, other.strides))
    return Affine(one.base + other.base, strides, one.shape, one.bits)


def subtract(one: Affine, other: Affine) -> Affine:
    """The difference; the caller looks at its extremes."""
    strides = tuple(map(int.__sub__, one.strides, other.strides))
    return Affine(one.base - other.base, strides, one.shape, one.bits)


def multiply(one: Affine, other: Affine) -> Affine | None:
    """The product where it is in a row as well, else None."""
    if one.flat and other.flat:
        return Affine(one.base * other.base, one.strides, one.shape, one.bits)
    if not (other.flat and isinstance(other.base, int)):
        one, other = other, one
    if not (other.flat and isinstance(other.base, int)):
        return None
    factor = other.base
    return Affine(one.base * factor, tuple(stride * factor for stride in one.strides), one.shape, one.bits)


FAR = 1 << 62


def within_64_bits(number: int) -> int:
    """The number as 64 bits with a sign hold it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def fits(value: Affine) -> bool:
    """Whether every number fits the width of the type."""
    if value.bits == 64 and not isinstance(value.base, int):
        low, high = value.span()  # the bases have wrapped by themselves
        return low >= -FAR and high < FAR
    low, high = value.extremes()
    limit = 1 << (value.bits - 1)
    return -limit <= low and high < limit


def with_shape(value: Affine, strides: tuple[int, ...], shape: tuple[int, ...]) -> Affine:
    """The same base laid out over another tile."""
    return Affine(value.base, strides, shape, value.bits)


def dense(value: Any) -> np.ndarray:
    """Any integer or truth value as an array."""
    return value if isinstance(value, np.ndarray) else value.dense()
