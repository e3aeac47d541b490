"""Names by number, so that a record holds a small integer and a name is looked at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np

from npuscope.monitor.activity.batch import Column


class Strings:
    """Texts in the order of their first use; number `i` is `texts[i]`. Only grows; safe for several threads."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.texts)

    def number(self, text: str) -> int:
        """The number of a text, a new one if it is new."""
        known = self._numbers.get(text)
        if known is not None:
            return known
        with self._lock:
            if text not in self._numbers:
                # The text first: whoever finds the number finds the text.
                self.texts.append(text)
                self._numbers[text] = len(self.texts) - 1
            return self._numbers[text]

    def numbers(self, texts: Iterable[str]) -> Column:
        """The numbers of several texts: int32."""
        return np.fromiter((self.number(text) for text in texts), np.int32)
