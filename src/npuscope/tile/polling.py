"""Waiting for memory to hold what another program puts there."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from npuscope.tile.affine import dense


class Poll:
    """Which elements have been seen as expected; after `limit` nanoseconds the wait is over as it is."""

    def __init__(self, expected: Any, limit: Any = None) -> None:
        self._expected = dense(expected)
        self._end = None if limit is None else time.monotonic_ns() + int(dense(limit).max())
        self.matched: np.ndarray = np.zeros((1,) * self._expected.ndim, np.bool_)

    @property
    def timed(self) -> bool:
        """Whether time alone ends the wait."""
        return self._end is not None

    def over(self, found: np.ndarray) -> bool:
        """Take note of what memory holds now; whether the wait is over."""
        self.matched = self.matched | (found == self._expected)
        return bool(self.matched.all()) or (self._end is not None and time.monotonic_ns() >= self._end)
