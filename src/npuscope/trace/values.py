"""Which values a column of whole numbers has; a million rows are looked up and not sorted."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

BITS = 22
MOST = 1 << BITS
"""A table has a place for each value that could be, up to this many, which costs less than sorting."""
GOLDEN = 0x9E3779B97F4A7C15
"""Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4): the upper bits of a product with an odd number."""


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((distinct,) where in `values` each distinct one stands first, in that order; (values,) which of them each is).

    `values` are whole numbers of 64 bits. As ``numpy.unique``, but hashed and not sorted: a million values of which few
    differ take less than half the time.
    """
    bits = np.ascontiguousarray(values).view(np.uint64)
    earliest, rest = np.empty(values.size, np.int64), np.arange(values.size)
    table, multiplier = np.empty(MOST, np.int64), GOLDEN
    while rest.size:
        bucket = (bits[rest] * np.uint64(multiplier)) >> np.uint64(64 - BITS)
        table[bucket[::-1]] = rest[::-1]  # of those that fall together the first is written last, and stays
        earliest[rest] = table[bucket]
        rest = rest[bits[rest] != bits[earliest[rest]]]  # other values were there first: once more, mixed otherwise
        multiplier = multiplier * GOLDEN % 2**64
    is_first = earliest == np.arange(values.size)
    return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[earliest]


def few_distinct(values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ones of `values` (rows,), ascending, and (rows,) which of them each is; all are from 0 to below
    `size`."""
    if size > MOST:
        numbers, which = np.unique(values, return_inverse=True)
        return numbers, which
    known = np.zeros(size, bool)
    known[values] = True
    return np.flatnonzero(known), (np.cumsum(known) - 1)[values]


def among(values: np.ndarray, wanted: Collection[int]) -> np.ndarray:
    """Whether each of `values`, numbers of pipes, opcodes and the like, none negative, is one of those `wanted`."""
    known = np.zeros(max(int(values.max(initial=0)), *wanted, 0) + 1, bool)
    known[np.array([*wanted], np.int64)] = True
    return known[values]
