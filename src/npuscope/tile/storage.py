"""The user's memory as a kernel sees it: arguments, each a view of a storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(slots=True, eq=False)
class Storage:
    """`size` bytes at host `address`; `data` is None when nothing backs them (a fake tensor): reads give zeros."""

    address: int
    size: int
    data: np.ndarray | None
    owner: Any = None
    _typed: dict[np.dtype[Any], np.ndarray] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.address + self.size

    def holds(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """Whether accesses of `size` bytes lie in it."""
        inside: np.ndarray = (addresses >= self.address) & (addresses <= self.end - size)
        return inside

    def typed(self, dtype: np.dtype[Any]) -> np.ndarray:
        """The whole elements from the first byte on, sharing memory."""
        found = self._typed.get(dtype)
        if found is None:
            assert self.data is not None
            whole = self.size // dtype.itemsize * dtype.itemsize
            found = self._typed[dtype] = self.data[:whole].view(dtype)
        return found

    def window(
        self, dtype: np.dtype[Any], address: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> np.ndarray:
        """Elements at `address` and at multiples of `strides` bytes from it, sharing memory. All must lie inside."""
        if self.data is None:
            return np.broadcast_to(np.zeros((), dtype), shape)
        return np.ndarray(shape, dtype, self.data, address - self.address, strides)


@dataclass(slots=True, eq=False)
class Argument:
    """A pointer argument: the view that the user passed. Extents and strides are in elements."""

    name: str
    storage: Storage
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    number: int = -1  # of its buffer in the trace
    writeable: bool = True
    low: int = 0
    high: int = 0
    gaps: bool = False
    undefined: tuple[tuple[int, int], ...] = ()  # bytes from `low` on that nothing has written before the launch

    def __post_init__(self) -> None:
        steps = [(count - 1) * stride for count, stride in zip(self.shape, self.strides, strict=True)]
        empty = 0 in self.shape
        size = self.dtype.itemsize
        self.low = self.address + (0 if empty else size * sum(step for step in steps if step < 0))
        self.high = self.low if empty else self.address + size * (sum(step for step in steps if step > 0) + 1)
        distinct = 1
        for count, stride in zip(self.shape, self.strides, strict=True):
            distinct *= count if stride else 1
        self.gaps = not empty and (self.high - self.low) != distinct * size

    @property
    def in_rows(self) -> bool:
        """Whether the elements follow each other row by row, without gaps."""
        expected = 1
        for count, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if count != 1 and stride != expected:
                return False
            expected *= count
        return True

    def holds(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """Whether accesses of `size` bytes lie in the view and not in the gaps between its rows."""
        inside: np.ndarray = (addresses >= self.low) & (addresses <= self.high - size)
        if self.gaps:
            inside &= self._member((addresses - self.low) // self.dtype.itemsize)
        return inside

    def _member(self, offset: np.ndarray) -> np.ndarray:
        """Whether element offsets from the lowest one belong to the view; strides are taken from the largest down."""
        pairs = sorted(
            ((abs(stride), count) for count, stride in zip(self.shape, self.strides, strict=True) if stride),
            reverse=True,
        )
        rest, inside = offset, np.ones(offset.shape, np.bool_)
        for stride, count in pairs:
            index = np.minimum(rest // stride, count - 1)
            rest = rest - index * stride
        inside &= rest == 0
        return inside

    def element(self, address: int) -> int:
        """The element that an address lies in, counted from the first one of the view."""
        return (address - self.address) // self.dtype.itemsize


MOST_KEPT = 1 << 28
"""Bytes of memory that are kept as they were."""


@dataclass(slots=True)
class Before:
    """What storages held before a launch wrote to them, and whether it read bytes that nothing had written."""

    read: bool = False
    complete: bool = True
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    _room: int = MOST_KEPT

    def keep(self, argument: Argument) -> None:
        """Remember the content of a storage that is about to be written for the first time."""
        storage = argument.storage
        if id(storage) in self.kept or storage.data is None:
            return
        self._room -= storage.size
        if self._room < 0:
            self.complete = False
            return
        whole = argument.undefined == ((0, storage.size),)  # then there is nothing to remember
        self.kept[id(storage)] = np.empty(storage.size, np.uint8) if whole else storage.data.copy()

    def look(self, argument: Argument, low: int, high: int) -> None:
        """Take note of a read of the bytes [low, high)."""
        if not self.read and argument.undefined:
            low, high = low - argument.low, high - argument.low
            self.read = any(start < high and low < end for start, end in argument.undefined)
