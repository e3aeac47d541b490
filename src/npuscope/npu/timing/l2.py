"""The L2 cache that all cores share: lines of 512 bytes in sets, filled in sectors of 128 (hardware.md 6.6).

Where there is no room the line goes that was written longest ago, else the one used longest ago. That is solved from
E-ADD cases 4 and 5, E-GELU and E-N2Z: what is written reaches GM within the task as far as new lines need its place
(two buffers: 402 MB in 264 us), and stays where reads do not allocate (187 us).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.layout import Record

HIT, MISS, CLEAN_VICTIM, DIRTY_VICTIM = 0, 1, 2, 3
EMPTY = -1
SECTOR = 128
"""Bytes of a line that are filled at a time: the requests of A2 (LIM22), the lines of 950 (CACHE)."""

LINE = np.dtype(
    [("tag", np.int64), ("used", np.int64), ("dirty", np.int64), ("valid", np.int64), ("ready", np.float64)],
    align=True,
)
"""A line's number; when it was last touched; whether it was written; a bit for each sector that is there; the cycle
from which it is."""


@dataclass
class L2:
    """The cache's state, which can be carried from one launch to the next: `lines` (sets, ways) of LINE, and a `clock`
    that counts accesses; `warm` says that one has used it."""

    lines: np.ndarray
    clock: int = 0
    warm: bool = False

    def carry_over(self) -> None:
        """Between two launches: everything that was on its way has come, and the next one's clock starts at 0."""
        self.lines["ready"] = 0.0


def cold(chip: Chip) -> L2:
    """An empty L2 of a chip."""
    facts = chip.timing.memory
    lines = np.zeros((max(chip.l2.bytes // (facts.line * facts.ways), 1), facts.ways), LINE)
    lines["tag"] = EMPTY
    return L2(lines)


@inner
def touch(
    l2: np.ndarray, counts: Record, number: int, sectors: int, writes: int, allocates: int, ready: float
) -> tuple[int, float]:
    """One access to some sectors of a line: HIT, or MISS, or what a miss pushed out; and when the data is in L2. What a
    miss brings is there at `ready`; another access to it meanwhile is a hit that has to wait."""
    ways = l2[number % l2.shape[0]]
    counts.clock += 1
    first = 0
    for way in range(ways.size):
        line = ways[way]
        if line.tag == number:
            missing = sectors & ~line.valid
            line.used = counts.clock
            line.valid |= sectors
            if writes:
                line.dirty = 1
                return HIT, 0.0
            if missing == 0:
                return HIT, line.ready
            line.ready = ready
            return MISS, ready
        other = ways[first]
        # The first to make room: an empty one, then those written, then the one used longest ago.
        if other.tag != EMPTY and (
            line.tag == EMPTY
            or line.dirty > other.dirty
            or (line.dirty == other.dirty and line.used < other.used)
        ):
            first = way
    if not allocates:
        return MISS, ready
    line = ways[first]
    outcome = MISS if line.tag == EMPTY else CLEAN_VICTIM + line.dirty
    line.tag = number
    line.used = counts.clock
    line.valid = sectors
    line.dirty = writes
    line.ready = 0.0 if writes else ready
    return outcome, ready


@inner
def holds(l2: np.ndarray, number: int) -> bool:
    """Whether a line is in the cache; nothing changes."""
    ways = l2[number % l2.shape[0]]
    found = False
    for way in range(ways.size):
        found = found or ways[way].tag == number
    return found


@inner
def count_line(seen: np.ndarray, step: int, line: int, hit: bool) -> None:
    """Count an access in an open hash table of records layout.SEEN."""
    mask = seen.size - 1
    first = slot = ((line * 0x9E3779B1 + step * 0x85EBCA77) ^ (line >> 15)) & mask
    while seen[slot].step != 0 and not (seen[slot].step == step + 1 and seen[slot].line == line):
        slot = (slot + 1) & mask
        if slot == first:
            return  # full: accesses outside every buffer can be more than there is room for
    found = seen[slot]
    found.step = step + 1
    found.line = line
    if hit:
        found.hits += 1
    else:
        found.misses += 1
