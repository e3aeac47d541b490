"""The operands of slices, as the logs have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from npuscope.profiler.ingest.text import LogText


class Details(Sequence[str]):
    """The text of each slice, cut from the logs when asked for; `source` indexes `texts`, the spans lie in them."""

    def __init__(self, texts: Sequence[LogText], source: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        self._texts, self._source, self._starts, self._ends = texts, source, starts, ends

    def __len__(self) -> int:
        return int(self._source.size)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[int(index)]
        return self._texts[self._source[place]].word(int(self._starts[place]), int(self._ends[place]))

    def distinct(self, which: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The texts that differ among those of slices `which`, and (those,) int64 which of them each has."""
        keys = np.zeros(which.size, np.uint64)
        source = self._source[which]
        for number, text in enumerate(self._texts):
            mine = np.flatnonzero(source == number)
            if mine.size:
                starts, ends = self._starts[which[mine]], self._ends[which[mine]]
                lengths = (ends - starts).astype(np.uint64)  # the hash leaves blanks out
                keys[mine] = text.hashes(starts, ends).view(np.uint64) * np.uint64(0x100000001B3) ^ lengths
        _, examples, place = np.unique(keys, return_index=True, return_inverse=True)
        return [self[row] for row in which[examples].tolist()], place
