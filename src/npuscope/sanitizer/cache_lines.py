"""A mirror of each core's data cache, driven by a trace: which lines it holds, which bytes of them the core wrote, and
which bytes memory has got from somebody else since (hardware.md 3.5). Bytes of a line are bits of an integer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from npuscope.sanitizer.access import AccessView, describe, footprint_of
from npuscope.trace.footprint import Footprint
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import CoreType, Pipe, Role

LINE = 64
"""Bytes of a line, on every chip (hardware.md 1.4)."""
WHOLE = (1 << LINE) - 1
SMALL = ("2201", CoreType.AIC)
"""The core whose cache holds 16 KB; all others hold 32 (hardware.md 1.4)."""


def capacity(arch: str, kind: CoreType) -> int:
    """Lines that the data cache of a core holds."""
    return (16384 if (arch, kind) == SMALL else 32768) // LINE


class Ref(NamedTuple):
    """An access by the numbers that the trace holds, so that it can be described batches later."""

    core: int
    pipe: int
    opcode: int
    site: int
    buffer: int
    role: int
    address: int
    footprint: int
    row: int

    @property
    def scalar(self) -> bool:
        """Whether the scalar unit makes it, through its cache."""
        return self.pipe == Pipe.S

    def view(self, batch: Batch) -> AccessView:
        """The access with everything it refers to."""
        return describe(
            batch, self.site, self.core, self.opcode, self.pipe, batch.buffers[self.buffer], Role(self.role),
            self.address, footprint_of(batch, self.footprint), self.row,
        )


def bits(start: int, end: int, line: int) -> int:
    """The bytes [start, end) that lie in line number `line`."""
    first, last = max(start - line * LINE, 0), min(end - line * LINE, LINE)
    return (1 << last) - (1 << first) if first < last else 0


def touched(batch: Batch, ref: Ref, line: int) -> int:
    """The bytes of a line that an access touches."""
    shape = footprint_of(batch, ref.footprint)
    if isinstance(shape, Footprint) and not shape.loops and shape.mask is None:
        return bits(ref.address, ref.address + shape.nbytes, line)
    starts = ref.address + (shape.starts() if isinstance(shape, Footprint) else shape.starts)
    near = starts[(starts < (line + 1) * LINE) & (starts + shape.nbytes > line * LINE)]
    found = 0
    for start in np.unique(near).tolist():
        found |= bits(start, start + shape.nbytes, line)
    return found


class Line:
    """One cached line. `stores` are this core's writes that memory does not have, `newer` the writes of others that the
    line does not have; each with its bytes, no byte in two of a kind. `loaded` is the access that brought the line."""

    __slots__ = ("number", "loaded", "dirty", "stale", "stores", "newer")

    def __init__(self, number: int, loaded: Ref) -> None:
        self.number = number
        self.loaded = loaded
        self.dirty = 0
        self.stale = 0
        self.stores: list[tuple[int, Ref]] = []
        self.newer: list[tuple[int, Ref]] = []

    def write(self, mask: int, ref: Ref) -> None:
        """The core writes bytes of the line."""
        self.dirty |= mask
        self.stores = put(self.stores, mask, ref)
        if self.stale & mask:
            self.stale &= ~mask
            self.newer = without(self.newer, mask)

    def outdate(self, mask: int, ref: Ref) -> None:
        """Memory gets other bytes, apart from those that the core wrote later than `ref` was made."""
        for own, store in self.stores:
            if store.row > ref.row:
                mask &= ~own
        if mask:
            self.stale |= mask
            self.newer = put(self.newer, mask, ref)


Writes = list[tuple[int, Ref]]


def without(writes: Writes, mask: int) -> Writes:
    """The writes less some bytes."""
    return [(rest, ref) for bytes_, ref in writes if (rest := bytes_ & ~mask)]


def put(writes: Writes, mask: int, ref: Ref) -> Writes:
    """The writes after another one."""
    return [*without(writes, mask), (mask, ref)]


def among(writes: Writes, mask: int) -> Iterator[Ref]:
    """The writes of some of the bytes."""
    return (ref for bytes_, ref in writes if bytes_ & mask)


class CoreCache:
    """The cache of one core, least recently used line first (as npu.cache replaces them)."""

    __slots__ = ("lines", "capacity")

    def __init__(self, capacity: int) -> None:
        self.lines: dict[int, Line] = {}
        self.capacity = capacity

    def use(self, number: int, ref: Ref) -> tuple[Line, bool, Line | None]:
        """A line, whether it had to be loaded, and the one that had to go for it."""
        line = self.lines.pop(number, None)
        fresh = line is None
        evicted = None
        if line is None:
            if len(self.lines) >= self.capacity:
                evicted = self.lines.pop(next(iter(self.lines)))
            line = Line(number, ref)
        self.lines[number] = line
        return line, fresh, evicted
