"""How much goes to and from GM over time: the MTE throughput counters (opprof.md 2.6, 3.10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.trace.schema import Space
from npuscope.trace.timeline import Timeline

NAMES = ("GM_TO_L1", "GM_TO_UB", "GM_TO_TOTAL", "L1_TO_GM", "UB_TO_GM", "TOTAL_TO_GM")
LONGEST = 60_000_000
"""Bins at most: a launch of a minute."""
LEAST = 1e-3
"""Bytes below this in a bin are a rounding error of the sum."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """`bytes` (6, bins) float64: what went each way of :data:`NAMES` in each microsecond, so MB/s. `cut` are the bytes
    that went after the last bin that is kept."""

    bytes: np.ndarray
    cut: float = 0.0

    @property
    def bins(self) -> np.ndarray:
        """The microseconds to write, ascending: those with traffic, and the one after each, which is 0 at the end."""
        busy = np.flatnonzero(self.bytes.any(axis=0))
        return np.union1d(busy, busy + 1)

    def at(self, bins: np.ndarray) -> np.ndarray:
        """The bytes of some bins, (6, those); 0 after the last."""
        inside = np.minimum(bins, self.bytes.shape[1] - 1)
        return np.where(bins < self.bytes.shape[1], self.bytes[:, inside], 0.0)


def throughput(timeline: Timeline, longest: int = LONGEST) -> Throughput:
    """The bytes of every transfer with GM, spread evenly over the time from its request to its last response."""
    source, target = timeline.transfer("source"), timeline.transfer("target")
    start, end = timeline.transfer("start") / timeline.mhz, timeline.transfer("end") / timeline.mhz
    size = timeline.transfer("bytes").astype(np.float64)
    reads, writes = (source == Space.GM) & (target != Space.GM), (target == Space.GM) & (source != Space.GM)
    bins = int(min(np.ceil(end[reads | writes].max(initial=0.0)) + 1, longest))
    ways = (
        reads & (target == Space.L1),
        reads & (target == Space.UB),
        reads,
        writes & (source == Space.L1),
        writes & (source == Space.UB),
        writes,
    )
    table = np.stack([_spread(start[way], end[way], size[way], bins) for way in ways])
    moved = float(size[reads | writes].sum())
    return Throughput(table, max(moved - float(table[2].sum() + table[5].sum()), 0.0) if bins == longest else 0.0)


def _spread(start: np.ndarray, end: np.ndarray, size: np.ndarray, bins: int) -> np.ndarray:
    """Bytes in each bin of one microsecond, (bins,) float64; what lies after the last bin is left out."""
    rate = size / np.maximum(end - start, 1e-12)
    first, last = start.astype(np.int64), end.astype(np.int64)
    inside = first == last
    room = max(bins, int(last.max(initial=0)) + 1) + 2
    across = ~inside
    found = np.zeros(room)
    found += np.bincount(first[inside], size[inside], room)
    found += np.bincount(first[across], (rate * (first + 1 - start))[across], room)
    found += np.bincount(last[across], (rate * (end - last))[across], room)
    steady = np.bincount(first[across] + 1, rate[across], room) - np.bincount(last[across], rate[across], room)
    found += np.cumsum(steady)
    found[found < LEAST] = 0.0
    return found[:bins]
