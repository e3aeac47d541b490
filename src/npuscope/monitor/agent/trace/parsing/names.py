"""Texts by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray


class _Numbers(dict[Any, int]):
    """A key's number, a new one for a new key: looking up costs no Python for those known."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class Names:
    """Texts in the order of their first use. Number 0 is the empty text."""

    def __init__(self) -> None:
        self._numbers = _Numbers({"": 0})
        self._lists: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, text: str) -> int:
        """The number of one."""
        return self._numbers[text]

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of many."""
        return np.fromiter(map(self._numbers.__getitem__, texts), np.int64, len(texts))

    def lists(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """The numbers of the texts of lists; none is the empty text."""
        places = [place for place, value in enumerate(values) if value]
        found = np.zeros(len(values), np.int64)
        if places:
            keys = [orjson.dumps(values[place]) for place in places]
            for key, place in zip(keys, places, strict=True):
                if key not in self._lists:
                    self._lists[key] = self.number(_text(values[place]))
            found[places] = [self._lists[key] for key in keys]
        return found

    @property
    def texts(self) -> list[str]:
        """All of them, by number."""
        return list(self._numbers)

    def array(self) -> NDArray[Any]:
        """All of them, to be indexed by a column of numbers."""
        return np.array(self.texts, object)


def _text(value: Sequence[Any]) -> str:
    """As the vendor writes shapes: dimensions by comma, operands by semicolon."""
    return ";".join(_operand(one) for one in value)


def _operand(value: Any) -> str:
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return "[" + "|".join(_operand(one) for one in value) + "]"
        return ",".join(str(one) for one in value)
    return str(value)
