"""The compiled loop that lays out rows of text (npuscope.profiler.writers.text_rows)."""

from __future__ import annotations

import numpy as np
from numba import njit

LITERAL, TEXT, WHOLE, MICROS, NANOS = range(5)
MINUS, POINT, ZERO = ord("-"), ord("."), ord("0")


@njit(cache=True, error_model="numpy")
def _digits(out: np.ndarray, at: int, value: int | np.uint64, least: int) -> int:
    """Write a non-negative integer with at least `least` digits; the place after it."""
    rest, count, ten = np.uint64(value), 1, np.uint64(10)  # without a sign, dividing by ten is a multiplication
    limit = ten
    while rest >= limit and count < 19:
        limit *= ten
        count += 1
    count = max(count, least)
    for place in range(at + count - 1, at - 1, -1):
        whole = rest // ten
        out[place] = ZERO + np.uint8(rest - whole * ten)
        rest = whole
    return at + count


@njit(cache=True, error_model="numpy")
def fill(
    parts: np.ndarray,
    bounds: np.ndarray,
    form: np.ndarray,
    rows: np.ndarray,
    blob: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
) -> int:
    """Write every row by its form into `out`, which must have the room; the number of bytes written."""
    at = 0
    for row in range(rows.shape[1]):
        number = form[row]
        for part in range(bounds[number], bounds[number + 1]):
            kind, argument = parts[part, 0], parts[part, 1]
            value = argument if kind == LITERAL else rows[argument, row]
            if kind <= TEXT:
                first, last = starts[value], starts[value + 1]
                out[at : at + last - first] = blob[first:last]
                at += last - first
                continue
            if value < 0:
                out[at] = MINUS
                at += 1
                value = -value
            if kind == WHOLE:
                at = _digits(out, at, value, 1)
                continue
            if kind == MICROS:
                whole, decimals = np.uint64(value) // np.uint64(1000000), 6
                rest = np.uint64(value) - whole * np.uint64(1000000)
            else:
                whole, decimals = np.uint64(value) // np.uint64(1000), 3
                rest = np.uint64(value) - whole * np.uint64(1000)
            at = _digits(out, at, whole, 1)
            out[at] = POINT
            at = _digits(out, at + 1, rest, decimals)
    return at
