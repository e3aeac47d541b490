"""An open-addressing hash table in a (slots, 2) array, for compiled code: 64-bit keys, none 0, to row numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

KEY, VALUE = 0, 1


@njit(cache=True)
def mixed(value: int) -> Any:
    """The bits of `value` spread over the word (the finaliser of splitmix64)."""
    word = np.uint64(value)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(word ^ (word >> np.uint64(31)))


@njit(cache=True)
def find(index: np.ndarray, key: int) -> int:
    """The slot that holds `key`, or the empty one where it belongs: compare its key."""
    mask = index.shape[0] - 1
    slot = mixed(key) & mask
    while index[slot, KEY] != key and index[slot, KEY] != 0:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def rehash(index: np.ndarray, larger: np.ndarray) -> None:
    """Copy everything into a larger table."""
    for slot in range(index.shape[0]):
        if index[slot, KEY] != 0:
            place = find(larger, index[slot, KEY])
            larger[place, KEY] = index[slot, KEY]
            larger[place, VALUE] = index[slot, VALUE]
