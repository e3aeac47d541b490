"""The numbers of texts in one database: `STRING_IDS`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.processors.texts import sound


class Ids:
    """Counts texts from 0 in the order in which the database first uses them."""

    def __init__(self, strings: Strings) -> None:
        self.new: list[tuple[int, str]] = []
        """What is not in the database yet."""
        self._strings = strings
        self._known: dict[str, int] = {}
        self._table = np.full(256, -1)
        self._next = 0

    def of(self, numbers: Column) -> Column:
        """Ids, int64, of the texts that have these numbers in the run's strings."""
        if len(self._table) < len(self._strings):
            grown = np.full(2 * len(self._strings), -1)
            grown[: len(self._table)] = self._table
            self._table = grown
        ids = self._table[numbers]
        if (ids < 0).any():
            fresh, first = np.unique(numbers[ids < 0], return_index=True)
            for number in fresh[np.argsort(first)].tolist():
                self._table[number] = self.text(self._strings.texts[number])
            ids = self._table[numbers]
        return ids

    def text(self, text: str) -> int:
        """The id of one text."""
        if text not in self._known:
            self._known[text] = self._next
            self.new.append((self._next, sound(text)))
            self._next += 1
        return self._known[text]

    def once(self, texts: Sequence[str]) -> Column:
        """Ids of texts that will not come again; they are not remembered, because there is no end of them."""
        begin, self._next = self._next, self._next + len(texts)
        self.new += zip(range(begin, self._next), map(sound, texts), strict=True)
        return np.arange(begin, self._next)

    def again(self) -> None:
        """Everything that is remembered goes into the database once more, for it is a new one."""
        waiting = {number for number, _ in self.new}
        self.new += [(number, sound(text)) for text, number in self._known.items() if number not in waiting]
