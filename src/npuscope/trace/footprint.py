"""Which bytes an access touches, as a shape laid at an address.

A footprint is `nbytes` contiguous bytes repeated by up to three loops of (count, stride in bytes), and optionally a
lane mask: one flag per contiguous run of the innermost two levels. Footprints are interned: the same shape has the
same number for the life of the process, so that a row of the access table is five integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

Loop = tuple[int, int]


@dataclass(frozen=True, slots=False)
class Footprint:
    """`nbytes` contiguous bytes under `loops` (outermost first); `mask` selects, in row-major order of `loops`' last
    ``mask_rank`` loops, which runs are touched (None: all)."""

    nbytes: int
    loops: tuple[Loop, ...] = ()
    mask: bytes | None = None
    mask_rank: int = 0

    @cached_property
    def low(self) -> int:
        """First touched byte relative to the address, masks ignored."""
        return sum(min(0, (count - 1) * stride) for count, stride in self.loops)

    @cached_property
    def high(self) -> int:
        """One past the last touched byte relative to the address, masks ignored."""
        return self.nbytes + sum(max(0, (count - 1) * stride) for count, stride in self.loops)

    @cached_property
    def empty(self) -> bool:
        """No byte is touched."""
        return self.nbytes == 0 or any(count == 0 for count, _ in self.loops) or (
            self.mask is not None and not any(self.mask)
        )

    def starts(self) -> np.ndarray:
        """Offsets (int64, 1-D, in loop order) at which runs of `nbytes` bytes start."""
        offsets = np.zeros(1, np.int64)
        for count, stride in self.loops:
            offsets = (offsets[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
        if self.mask is None:
            return offsets
        lanes = np.frombuffer(self.mask, np.bool_)
        return offsets.reshape(-1, lanes.size)[:, lanes].reshape(-1)

    def offsets(self) -> np.ndarray:
        """Every touched byte relative to the address (int64, 1-D, may repeat)."""
        return (self.starts()[:, None] + np.arange(self.nbytes, dtype=np.int64)).reshape(-1)


@dataclass(frozen=True, slots=True)
class Explicit:
    """`nbytes` bytes at each of `starts` (int64 offsets from the access address), for gather, scatter and the like."""

    starts: np.ndarray
    nbytes: int

    @property
    def low(self) -> int:
        """First touched byte relative to the address."""
        return int(self.starts.min()) if self.starts.size else 0

    @property
    def high(self) -> int:
        """One past the last touched byte relative to the address."""
        return int(self.starts.max()) + self.nbytes if self.starts.size else 0

    def offsets(self) -> np.ndarray:
        """Every touched byte relative to the address (int64, 1-D, may repeat)."""
        return (self.starts[:, None] + np.arange(self.nbytes, dtype=np.int64)).reshape(-1)


FOOTPRINTS: list[Footprint] = []
_numbers: dict[Footprint, int] = {}


def intern(footprint: Footprint) -> int:
    """The number of `footprint` in :data:`FOOTPRINTS`."""
    number = _numbers.get(footprint)
    if number is None:
        number = _numbers[footprint] = len(FOOTPRINTS)
        FOOTPRINTS.append(footprint)
    return number
