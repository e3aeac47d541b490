"""A launch's buffer and footprint tables as arrays, grown as batches arrive."""

from __future__ import annotations

import numpy as np

from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Space

NEVER = np.iinfo(np.int64).max


class BufferTable:
    """Bounds of every buffer of the current launch: `base`, `end` (clipped to the memory), `space`, the row at which it
    was `freed`, and whether it is `frozen` (read-only)."""

    def __init__(self) -> None:
        self.base = np.empty(0, np.int64)
        self.end = np.empty(0, np.int64)
        self.space = np.empty(0, np.int64)
        self.freed = np.empty(0, np.int64)
        self.frozen = np.empty(0, np.bool_)

    def grow(self, batch: Batch) -> None:
        """Take in the buffers that are new since the last batch, and the frees of this one."""
        known = self.base.size
        fresh = batch.buffers[known:]
        if fresh:
            rows = np.array([(item.base, item.base + item.size, item.space) for item in fresh], np.int64)
            capacity = np.full(len(Space), NEVER)
            for space, size in batch.launch.capacity.items():
                capacity[int(space)] = size
            self.base = np.concatenate([self.base, rows[:, 0]])
            self.end = np.concatenate([self.end, np.minimum(rows[:, 1], capacity[rows[:, 2]])])
            self.space = np.concatenate([self.space, rows[:, 2]])
            self.freed = np.concatenate([self.freed, np.full(len(fresh), NEVER)])
            self.frozen = np.concatenate([self.frozen, [not item.writeable for item in fresh]])
        rows_freed = np.flatnonzero(batch.column("opcode") == OPCODES.number("que_free"))
        owners = batch.column("a")[rows_freed]
        real = owners >= 0
        self.freed[owners[real]] = batch.first + rows_freed[real]


class FootprintTable:
    """Extents of the interned footprints: bytes before and after an access address, and whether any is touched."""

    def __init__(self) -> None:
        self.low = np.empty(0, np.int64)
        self.high = np.empty(0, np.int64)
        self.plain = np.empty(0, np.bool_)  # one contiguous run

    def grow(self) -> None:
        """Take in the footprints that are new."""
        known = self.low.size
        if known == len(FOOTPRINTS):
            return
        fresh = FOOTPRINTS[known:]
        self.low = np.concatenate([self.low, [0 if item.empty else item.low for item in fresh]])
        self.high = np.concatenate([self.high, [0 if item.empty else item.high for item in fresh]])
        self.plain = np.concatenate([self.plain, [not item.loops and item.mask is None for item in fresh]])

    def runs(self, numbers: np.ndarray) -> np.ndarray:
        """Which footprint numbers are one contiguous run."""
        self.grow()
        if not self.plain.size:
            return np.zeros(numbers.shape, np.bool_)
        plain: np.ndarray = (numbers >= 0) & self.plain[np.maximum(numbers, 0)]
        return plain

    def extents(self, batch: Batch, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of each footprint number, relative to the access address; equal where nothing is touched."""
        self.grow()
        low = self.low[np.maximum(numbers, 0)] if self.low.size else np.zeros(numbers.shape, np.int64)
        high = self.high[np.maximum(numbers, 0)] if self.high.size else np.zeros(numbers.shape, np.int64)
        for row in np.flatnonzero(numbers < 0):
            shape = batch.explicit[-int(numbers[row]) - 1]
            low[row], high[row] = shape.low, shape.high
        return low, high
