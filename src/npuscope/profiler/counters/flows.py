"""What moved between two memories, and what L2 did about it."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np

from npuscope.profiler.counters.sums import Sums
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN, Lane, Source

BEAT = 128
"""Bytes of one word on the way to and from L2: what main-memory counters count (hardware.md 6.9)."""
NAMED = ((Space.GM, Space.L0A), (Space.GM, Space.L0B), (Space.GM, Space.L1), (Space.UB, Space.GM))
"""Ways that formulas name by themselves: on a device they are counted by instrumentation, not by a counter."""

ENDS = 16
"""More than there are memories."""

Spaces = Space | Collection[Space] | None
"""A memory, one of several, or None for any."""


class Flows:
    """Every method gives an array of (cores,) float64; NaN on a core where the timeline does not tell."""

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self._timeline = sums.timeline
        self._slice = self._timeline.transfer("slice")

    def requests(self, source: Spaces, target: Spaces, size: int, lane: Lane | None = None) -> np.ndarray:
        """Requests of `size` bytes between two memories, rounded up for each stretch of data; `lane` restricts it to
        the data of one pipe."""
        which = self._between(source, target)
        if lane is not None:
            which &= self._sums.lane[self._slice] == lane
        size_of = self._timeline.transfer("bytes")
        return self._total(which, np.where(size_of == UNKNOWN, UNKNOWN, -(-size_of // size)))

    def beats(self, source: Spaces, target: Spaces) -> np.ndarray:
        """Words of 128 bytes between a core and L2."""
        return self.requests(source, target, BEAT)

    def lines(self, column: str, source: Spaces, target: Spaces) -> np.ndarray:
        """L2 lines by what became of them: ``hits``, ``misses`` or ``victims``."""
        return self._total(self._between(source, target), self._timeline.transfer(column))

    def read_words(self, column: str) -> np.ndarray:
        """Words of 128 bytes read from L2 that were ``hits`` or ``misses``: the words of each stretch of data, divided
        as its lines are."""
        hits, misses = self._timeline.transfer("hits"), self._timeline.transfer("misses")
        size = self._timeline.transfer("bytes")
        words = -(-size // BEAT)
        of_hits = np.rint(words * hits / np.maximum(hits + misses, 1)).astype(np.int64)
        values = np.where((hits + misses) > 0, of_hits if column == "hits" else words - of_hits, 0)
        unknown = (hits == UNKNOWN) | (misses == UNKNOWN) | (size == UNKNOWN)
        return self._total(self._between(Space.GM, None), np.where(unknown, UNKNOWN, values))

    def path_bytes(self) -> dict[str, np.ndarray]:
        """Bytes by way, ``GM_L1`` and so on: every pair of memories that some core moved data between, and those that
        formulas name."""
        pairs = np.flatnonzero(np.bincount(self._pair, minlength=ENDS * ENDS)).tolist()
        ends = (divmod(pair, ENDS) for pair in pairs)
        ways = {(Space(source - 1), Space(target - 1)) for source, target in ends if source and target} | {*NAMED}
        return {f"{source.name}_{target.name}": self.requests(source, target, 1) for source, target in sorted(ways)}

    @cached_property
    def _core(self) -> np.ndarray:
        return self._sums.core[self._slice]

    @cached_property
    def _pair(self) -> np.ndarray:
        """One small number for source and target of each transfer; UNKNOWN ends are 0."""
        return (self._timeline.transfer("source") + 1) * ENDS + self._timeline.transfer("target") + 1

    def _between(self, source: Spaces, target: Spaces) -> np.ndarray:
        fits = np.zeros((ENDS, ENDS), bool)
        fits[np.ix_(_places(source), _places(target))] = True
        return fits.reshape(-1)[self._pair]

    def _total(self, which: np.ndarray, values: np.ndarray) -> np.ndarray:
        if not self._slice.size and self._timeline.source is not Source.MODEL:
            return np.full(self._sums.cores, np.nan)  # a dump without the log of transfers
        return self._sums.known_total(self._core[which], values[which])


def _places(spaces: Spaces) -> list[int]:
    if spaces is None:
        return list(range(ENDS))
    return [spaces + 1] if isinstance(spaces, Space) else [space + 1 for space in spaces]
