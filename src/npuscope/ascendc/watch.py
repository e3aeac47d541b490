"""Watches ranges of UB for kinds of access, as CheckLocalMemoryIA sets them.

While a range is set, the recorder's list of accesses is one that looks at what is appended to it; without ranges it is
a plain list, so that watching costs nothing then.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from npuscope.npu.core import READ, Core
from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import ACCESS_COLUMNS, INSTRUCTION_COLUMNS, Fault, Pipe, Space

Range = tuple[int, int, int]
"""First byte, one past the last, kinds of access: bit 2n for reads and 2n + 1 for writes of scalar, vector, MTE."""

SCALAR, VECTOR, MTE = 0, 2, 4
UNIT = {int(Pipe.S): SCALAR, int(Pipe.V): VECTOR}
"""Bit of a pipe's reads; pipes that are not here move data."""

WIDTH = len(ACCESS_COLUMNS)
CORE, PIPE, SITE = (INSTRUCTION_COLUMNS.index(name) for name in ("core", "pipe", "site"))


class WatchedAccesses(list[int]):
    """A recorder's accesses; `ranges` are keyed (core, exception register)."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.accesses)
        self.recorder = recorder
        self.ranges: dict[tuple[int, int], Range] = {}

    def extend(self, values: Iterable[int]) -> None:
        """Append whole access rows, and compare each with the ranges of its core."""
        flat = tuple(values)
        super().extend(flat)
        for at in range(0, len(flat), WIDTH):
            self._look(*flat[at : at + WIDTH])

    def _look(self, row: int, role: int, buffer: int, address: int, number: int) -> None:
        recorder = self.recorder
        if recorder.buffers[buffer].space != Space.UB:
            return
        first = (row - recorder.flushed) * len(INSTRUCTION_COLUMNS)
        core, pipe, site = (recorder.instructions[first + column] for column in (CORE, PIPE, SITE))
        bit = UNIT.get(pipe, MTE) + (role != READ)
        shape = FOOTPRINTS[number] if number >= 0 else recorder.explicit[-number - 1]
        for (owner, register), (start, end, kinds) in self.ranges.items():
            if owner == core and kinds >> bit & 1:
                touched = _first_inside(shape, address, start, end)
                if touched is not None:
                    facts = {"register": register, "address": touched, "pipe": Pipe(pipe).name,
                             "role": "read" if role == READ else "write"}
                    recorder.add_fault(Fault("watched_access", row, core, site, facts))


def _first_inside(shape: Footprint | Explicit, address: int, start: int, end: int) -> int | None:
    """The lowest touched byte in [start, end), None when there is none."""
    if address + shape.high <= start or address + shape.low >= end:
        return None
    runs = address + (shape.starts if isinstance(shape, Explicit) else shape.starts())
    inside = runs[(runs < end) & (runs + shape.nbytes > start)]
    return int(np.maximum(inside, start).min()) if inside.size and shape.nbytes else None


def set_watch(core: Core, register: int, watched: Range | None) -> None:
    """Watch a range on behalf of an exception register of `core`, or with None stop."""
    recorder = core.recorder
    accesses = recorder.accesses
    if not isinstance(accesses, WatchedAccesses):
        if watched is None:
            return
        accesses = recorder.accesses = WatchedAccesses(recorder)
    accesses.ranges.pop((core.index, register), None)
    if watched is not None:
        core.at_end.append(lambda: set_watch(core, register, None))
        accesses.ranges[core.index, register] = watched
    if not accesses.ranges:
        recorder.accesses = list(accesses)
