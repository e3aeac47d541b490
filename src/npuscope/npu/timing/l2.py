"""The L2 cache that all cores share: lines of 512 bytes in sets, filled in sectors of 128 (hardware.md 6.6).

Where there is no room the line goes that was written longest ago, else the one used longest ago. That is solved from
E-ADD cases 4 and 5, E-GELU and E-N2Z: what is written reaches GM within the task as far as new lines need its place
(two buffers: 402 MB in 264 us), and stays where reads do not allocate (187 us).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.compiled import inner

HIT, MISS, CLEAN_VICTIM, DIRTY_VICTIM = 0, 1, 2, 3
EMPTY = -1
TICK = 0
SECTOR = 128
"""Bytes of a line that are filled at a time: the requests of A2 (LIM22), the lines of 950 (CACHE)."""


class L2Arrays(NamedTuple):
    """(sets, ways) each: `tags`, the lines' numbers; `used`, when each was last touched; `dirty`; `valid`, a bit for
    each sector that is there; `ready`, the cycle from which it is, float64. `clock` (1,) counts accesses."""

    tags: np.ndarray
    used: np.ndarray
    dirty: np.ndarray
    valid: np.ndarray
    ready: np.ndarray
    clock: np.ndarray


@dataclass
class L2:
    """The cache's state, which can be carried from one launch to the next; `warm` says that one has used it."""

    arrays: L2Arrays
    warm: bool = False

    def carry_over(self) -> None:
        """Between two launches: everything that was on its way has come, and the next one's clock starts at 0."""
        self.arrays.ready[:] = 0.0


def cold(chip: Chip) -> L2:
    """An empty L2 of a chip."""
    facts = chip.timing.memory
    sets = max(chip.l2.bytes // (facts.line * facts.ways), 1)
    shape = (sets, facts.ways)
    clock = np.zeros(1, np.int64)
    used, dirty, valid = (np.zeros(shape, np.int64) for _ in range(3))
    return L2(L2Arrays(np.full(shape, EMPTY, np.int64), used, dirty, valid, np.zeros(shape), clock))


@inner
def sectors_of(low: int, high: int) -> int:
    """A bit for each sector of a line that bytes `low` to `high` of it touch."""
    first, last = low // SECTOR, (high - 1) // SECTOR
    return ((1 << (last + 1)) - 1) & ~((1 << first) - 1)


@inner
def touch(
    l2: L2Arrays, line: int, sectors: int, writes: bool, allocates: bool, ready: float
) -> tuple[int, float]:
    """One access to some sectors of a line: HIT, or MISS, or what a miss pushed out; and when the data is in L2. What a
    miss brings is there at `ready`; another access to it meanwhile is a hit that has to wait."""
    place = line % l2.tags.shape[0]
    l2.clock[TICK] += 1
    first = 0
    for way in range(l2.tags.shape[1]):
        if l2.tags[place, way] == line:
            missing = sectors & ~l2.valid[place, way]
            l2.used[place, way] = l2.clock[TICK]
            l2.valid[place, way] |= sectors
            if writes:
                l2.dirty[place, way] = 1
                return HIT, 0.0
            if missing == 0:
                return HIT, l2.ready[place, way]
            l2.ready[place, way] = ready
            return MISS, ready
        if goes_before(l2, place, way, first):
            first = way
    if not allocates:
        return MISS, ready
    outcome = MISS if l2.tags[place, first] == EMPTY else CLEAN_VICTIM + l2.dirty[place, first]
    l2.tags[place, first], l2.used[place, first] = line, l2.clock[TICK]
    l2.valid[place, first], l2.dirty[place, first] = sectors, 1 if writes else 0
    l2.ready[place, first] = 0.0 if writes else ready
    return outcome, ready


@inner
def goes_before(l2: L2Arrays, place: int, one: int, other: int) -> bool:
    """Whether a way of a set makes room before another: an empty one, then those written, then those used longest
    ago."""
    if l2.tags[place, other] == EMPTY or l2.tags[place, one] == EMPTY:
        return l2.tags[place, other] != EMPTY
    if l2.dirty[place, one] != l2.dirty[place, other]:
        return l2.dirty[place, one] > l2.dirty[place, other]
    return l2.used[place, one] < l2.used[place, other]


@inner
def holds(l2: L2Arrays, line: int) -> bool:
    """Whether a line is in the cache; nothing changes."""
    tags = l2.tags
    place = line % tags.shape[0]
    found = False
    for way in range(tags.shape[1]):
        found = found or tags[place, way] == line
    return found


@inner
def count_line(table: np.ndarray, step: int, line: int, hit: bool) -> None:
    """Count an access in an open hash table (slots, 4): step + 1 (0: free), line, hits, misses."""
    mask = table.shape[0] - 1
    first = slot = ((line * 0x9E3779B1 + step * 0x85EBCA77) ^ (line >> 15)) & mask
    while table[slot, 0] != 0 and not (table[slot, 0] == step + 1 and table[slot, 1] == line):
        slot = (slot + 1) & mask
        if slot == first:
            return  # full: accesses outside every buffer can be more than there is room for
    table[slot, 0], table[slot, 1] = step + 1, line
    table[slot, 2 if hit else 3] += 1
