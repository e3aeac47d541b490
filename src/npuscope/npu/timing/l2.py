"""The L2 cache that all cores share: lines of a few hundred bytes, sets, least recently used (hardware.md 6.6)."""

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
"""Bytes of a part of a line that is fetched by itself."""


class L2Arrays(NamedTuple):
    """`tags` (sets, ways): line numbers; `held`: the sectors that are there, bit 0 the first; `used`: when each was last
    touched; `dirty`; `clock` (1,)."""

    tags: np.ndarray
    held: np.ndarray
    used: np.ndarray
    dirty: np.ndarray
    clock: np.ndarray


@dataclass
class L2:
    """The cache's state, which can be carried from one launch to the next; `warm` says that one has used it."""

    arrays: L2Arrays
    warm: bool = False


def cold(chip: Chip) -> L2:
    """An empty L2 of a chip."""
    facts = chip.timing.memory
    sets = max(chip.l2.bytes // (facts.line * facts.ways), 1)
    shape = (sets, facts.ways)
    clock = np.zeros(1, np.int64)
    held, used, dirty = (np.zeros(shape, np.int64) for _ in range(3))
    return L2(L2Arrays(np.full(shape, EMPTY, np.int64), held, used, dirty, clock))


@inner
def touch(l2: L2Arrays, line: int, sectors: int, writes: bool, allocates: bool) -> int:
    """One access to `sectors` of a line: HIT, or MISS, or what a miss pushed out. A read misses a line that lacks one of
    its sectors."""
    tags, held, used, dirty, clock = l2.tags, l2.held, l2.used, l2.dirty, l2.clock
    place = line % tags.shape[0]
    clock[TICK] += 1
    ways = tags.shape[1]
    for way in range(ways):
        if tags[place, way] == line:
            used[place, way] = clock[TICK]
            lacks = sectors & ~held[place, way]
            held[place, way] |= sectors
            if writes:
                dirty[place, way] = 1
            return MISS if lacks != 0 and not writes else HIT
    if not allocates:
        return MISS
    oldest = 0
    for way in range(ways):
        if used[place, way] < used[place, oldest]:
            oldest = way
    outcome = MISS if tags[place, oldest] == EMPTY else CLEAN_VICTIM + dirty[place, oldest]
    tags[place, oldest] = line
    held[place, oldest] = sectors
    used[place, oldest] = clock[TICK]
    dirty[place, oldest] = 1 if writes else 0
    return outcome


@inner
def sectors_of(low: int, high: int, line: int, size: int) -> int:
    """The sectors of a line of `size` bytes that the bytes from `low` to `high` touch."""
    first = max(low - line * size, 0) // SECTOR
    last = (min(high - line * size, size) - 1) // SECTOR
    return (1 << (last + 1)) - (1 << first)


@inner
def holds(l2: L2Arrays, line: int) -> bool:
    """Whether a line is in the cache; nothing changes."""
    tags = l2.tags
    place = line % tags.shape[0]
    for way in range(tags.shape[1]):
        if tags[place, way] == line:
            return True
    return False


@inner
def count_line(table: np.ndarray, step: int, line: int, hit: bool) -> None:
    """Count an access in an open hash table (slots, 4): step + 1 (0: free), line, hits, misses."""
    mask = table.shape[0] - 1
    slot = ((line * 0x9E3779B1 + step * 0x85EBCA77) ^ (line >> 15)) & mask
    while table[slot, 0] != 0 and not (table[slot, 0] == step + 1 and table[slot, 1] == line):
        slot = (slot + 1) & mask
    table[slot, 0], table[slot, 1] = step + 1, line
    table[slot, 2 if hit else 3] += 1
