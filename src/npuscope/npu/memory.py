"""Byte-addressed device memories: the on-chip spaces of a core, and the user's arrays mapped as global memory."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npuscope.npu.device_addresses import GAP, DeviceAddresses
from npuscope.trace.schema import Space

UNDEFINED_BYTE = 0x7F
"""What on-chip memory holds before it is written: large floats and half NaN, so that a missing copy shows."""


class Memory:
    """`size` bytes of one space starting at device address `base`.

    `bytes` is a flat uint8 array over the real storage. Typed whole-memory arrays are cached because slicing one is
    several times cheaper than building a view per access.
    """

    __slots__ = ("space", "base", "size", "bytes", "owner", "_typed")

    def __init__(self, space: Space, base: int, data: np.ndarray, owner: Any = None) -> None:
        self.space = space
        self.base = base
        self.size = data.size
        self.bytes = data
        self.owner = owner  # keeps borrowed storage alive
        self._typed: dict[np.dtype[Any], np.ndarray] = {}

    def typed(self, dtype: np.dtype[Any]) -> np.ndarray:
        """All whole elements of this memory as a 1-D array of `dtype`, sharing storage."""
        view = self._typed.get(dtype)
        if view is None:
            whole = self.size // dtype.itemsize * dtype.itemsize
            view = self._typed[dtype] = self.bytes[:whole].view(dtype)
        return view


def on_chip(space: Space, size: int) -> Memory:
    """A fresh on-chip memory of `size` bytes at address 0, its content undefined."""
    return Memory(space, 0, np.full(size, UNDEFINED_BYTE, np.uint8))


def borrow(pointer: int, nbytes: int, writeable: bool, owner: Any) -> np.ndarray:
    """`nbytes` bytes at host address `pointer` as a uint8 array that shares storage with `owner`."""
    if nbytes == 0:
        return np.empty(0, np.uint8)
    raw = (ctypes.c_uint8 * nbytes).from_address(pointer)
    data = np.frombuffer(memoryview(raw), np.uint8)
    data.flags.writeable = writeable
    return data


class GlobalMemory:
    """Maps host arrays into one device address space, with unmapped gaps between them so that overruns hit nothing.

    With the `addresses` of a session an array has the same address in each of its launches.
    """

    GAP = GAP

    def __init__(self, addresses: DeviceAddresses | None = None) -> None:
        self.regions: list[Memory] = []
        self._addresses = DeviceAddresses() if addresses is None else addresses
        self._shared: list[tuple[int, int, int]] = []  # host address, end, device address of storage that arrays share
        self._parts: dict[int, int] = {}  # owner's id: stretches of its memory that are in use

    def share(self, arrays: Sequence[tuple[np.ndarray, Any]]) -> None:
        """Let arrays that overlap on the host overlap on the device: `map` gives such ones their place in the storage
        that they share. To be called with all (array, owner of its memory) before any of them is mapped."""
        ranges = sorted(
            ((array.ctypes.data, array.ctypes.data + array.size, owner) for array, owner in arrays if array.size),
            key=lambda item: item[:2],
        )
        stretches: list[tuple[int, int, int, Any]] = []  # low, high, arrays, owner
        for start, end, owner in ranges:
            if stretches and start < stretches[-1][1]:
                low, high, count, first = stretches[-1]
                stretches[-1] = low, max(high, end), count + 1, first
            else:
                stretches.append((start, end, 1, owner))
        self._parts = Counter(id(owner) for _, _, _, owner in stretches)
        self._shared = [
            (low, high, self._place(owner, low, high)) for low, high, count, owner in stretches if count > 1
        ]

    def map(self, data: np.ndarray, owner: Any = None, memory: Any = None) -> Memory:
        """Give the flat uint8 array `data` a device address, 512-byte aligned as the device's allocator does. `owner`
        is kept alive; `memory` is the object that the bytes belong to (:func:`~.device_addresses.owner_of`)."""
        region = Memory(Space.GM, self._base(data, memory), data, owner)
        self.regions.append(region)
        return region

    def _base(self, data: np.ndarray, memory: Any) -> int:
        if not data.size:
            return self._addresses.take(0)
        host = data.ctypes.data
        for low, high, base in self._shared:
            if low <= host < high:
                return base + host - low
        return self._place(memory, host, host + data.size)

    def _place(self, owner: Any, low: int, high: int) -> int:
        return self._addresses.place(owner, low, high, self._parts.get(id(owner), 0) == 1)

    def find(self, address: int) -> Memory | None:
        """The mapped region that holds `address`, if any."""
        for region in self.regions:
            if region.base <= address < region.base + region.size:
                return region
        return None


class LazyMemories:
    """The on-chip memories of one core, made when first touched: most kernels use one or two of the seven."""

    __slots__ = ("_sizes", "_made", "_make")

    def __init__(self, sizes: dict[Space, int], make: Callable[[Space, int], Memory] = on_chip) -> None:
        self._sizes = sizes
        self._made: dict[Space, Memory] = {}
        self._make = make

    def __getitem__(self, space: Space) -> Memory:
        memory = self._made.get(space)
        if memory is None:
            memory = self._made[space] = self._make(space, self._sizes[space])
        return memory

    def size(self, space: Space) -> int:
        """Capacity of `space` in bytes, 0 when the core has none."""
        return self._sizes.get(space, 0)

    def release(self) -> None:
        """Give the storage back: the core has finished."""
        self._made.clear()

    @property
    def touched(self) -> tuple[Memory, ...]:
        """The memories in use so far."""
        return tuple(self._made.values())
