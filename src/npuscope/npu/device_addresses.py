"""Device addresses of what lies on the host: made up, with gaps, never given out twice, kept while it lives."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

GAP = 1 << 21
"""Bytes between two places, in which nothing lies: an overrun of one does not hit the next."""
ALIGNMENT = 512
"""As the device's allocator aligns."""

ARGUMENTS = 0x12C0_0000_0000
BLOCKS = 0x12D0_0000_0000
BEYOND = 0x6000_0000_0000
"""Where the addresses of kernels' arguments begin, where those of memory begin that a script allocates on the device,
and where arguments go on that have no room before those."""


@dataclass(slots=True)
class _Known:
    """What one living storage got: the `places` of single stretches (host start, end), and the `base` of all of it."""

    reference: weakref.ref[Any]
    start: int = 0
    size: int = 0
    base: int = -1
    places: dict[tuple[int, int], int] = field(default_factory=dict)


class DeviceAddresses:
    """Those of a session. A storage is known by the object that owns it (:func:`owner_of`), for as long as that lives:
    what comes to lie at the same place on the host later is something else, and gets another address."""

    def __init__(self) -> None:
        self._next = ARGUMENTS
        self._known: dict[int, _Known] = {}

    def take(self, size: int) -> int:
        """A device address for `size` bytes that was not given out before."""
        base = self._next
        if base < BLOCKS <= base + size + GAP:
            base = BEYOND
        self._next = -(-(base + size + GAP) // ALIGNMENT) * ALIGNMENT
        return base

    def place(self, owner: Any, low: int, high: int, alone: bool) -> int:
        """The device address of the bytes from `low` to `high` on the host, which belong to `owner`.

        `alone`: nothing else of the owner's is in use together with them, so they may lie where they lie within all of
        it. Otherwise they lie apart, since two slices of one array must not run into each other unnoticed.
        """
        known = self._of(owner)
        if known is None:
            return self.take(high - low)
        offset = low - known.start
        if alone and known.size and offset >= 0 and high <= known.start + known.size and offset % ALIGNMENT == 0:
            if known.base < 0:
                known.base = self.take(known.size)
            return known.base + offset
        if (low, high) not in known.places:
            known.places[low, high] = self.take(high - low)
        return known.places[low, high]

    def _of(self, owner: Any) -> _Known | None:
        """What `owner` got so far; None where it cannot be told how long it lives."""
        key = id(owner)
        known = self._known.get(key)
        if known is not None and known.reference() is owner:
            return known
        try:
            reference = weakref.ref(owner, lambda gone: self._forget(key, gone))
        except TypeError:
            return None
        known = self._known[key] = _Known(reference, *_extent(owner))
        return known

    def _forget(self, key: int, gone: weakref.ref[Any]) -> None:
        known = self._known.get(key)
        if known is not None and known.reference is gone:
            del self._known[key]


def owner_of(array: Any) -> Any:
    """The object that owns the memory of an array, a view's as well as a whole one's: the last one on the way from
    view to owner of which it can be told when it goes."""
    while True:
        if hasattr(array, "untyped_storage"):
            return array.untyped_storage()
        above = array.base if isinstance(array, np.ndarray) else array.obj if isinstance(array, memoryview) else None
        if above is None or not type(above).__weakrefoffset__:
            return array
        array = above


def _extent(owner: Any) -> tuple[int, int]:
    """(host address, bytes) of all the memory of an owner; (0, 0) where that is not one stretch."""
    if isinstance(owner, np.ndarray):
        return (owner.ctypes.data, owner.nbytes) if owner.flags.forc else (0, 0)
    if hasattr(owner, "data_ptr"):
        return int(owner.data_ptr()), int(owner.nbytes())
    return 0, 0
