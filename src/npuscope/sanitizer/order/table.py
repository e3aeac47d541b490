"""An open-addressing hash table on two arrays, for compiled code: 64-bit keys, none of them 0, to small integers."""

from __future__ import annotations

import numpy as np
from numba import njit

EMPTY = 0


def new_table(size: int) -> tuple[np.ndarray, np.ndarray]:
    """(keys, values) with room for `size` slots, a power of two."""
    return np.zeros(size, np.int64), np.zeros(size, np.int64)


@njit(cache=True, inline="always")
def mixed(value: int) -> int:
    """The bits of `value` spread over the word (the finaliser of splitmix64)."""
    word = np.uint64(value)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(word ^ (word >> np.uint64(31)))


@njit(cache=True)
def find(keys: np.ndarray, key: int) -> int:
    """The slot that holds `key`, or the empty one where it belongs: compare ``keys[slot]`` with `key`."""
    mask = keys.size - 1
    slot = mixed(key) & mask
    while keys[slot] != key and keys[slot] != EMPTY:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def rehash(keys: np.ndarray, values: np.ndarray, new_keys: np.ndarray, new_values: np.ndarray) -> None:
    """Move everything into a larger table."""
    for slot in range(keys.size):
        if keys[slot] != EMPTY:
            place = find(new_keys, keys[slot])
            new_keys[place] = keys[slot]
            new_values[place] = values[slot]
