"""Numbers for a column of texts, most of which have been seen before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.strings import Strings


class Numbered(dict[str, int]):
    """The texts of one source that have a number already: looking one up takes no call of Python code."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings

    def __missing__(self, text: str) -> int:
        number = self[text] = self.strings.number(text)
        return number

    def of(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of `texts`."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))
