"""The compiled loop that lays out rows of text (npuscope.profiler.writers.text_rows)."""

from __future__ import annotations

import numpy as np
from numba import njit

LITERAL, TEXT, WHOLE, MICROS, NANOS = range(5)
MINUS, POINT, ZERO = ord("-"), ord("."), ord("0")


@njit(cache=True)
def _digits(out: np.ndarray, at: int, value: int, least: int) -> int:
    """Write a non-negative integer with at least `least` digits; the place after it."""
    count, rest = 1, value // 10
    while rest:
        count += 1
        rest //= 10
    count = max(count, least)
    for place in range(at + count - 1, at - 1, -1):
        out[place] = ZERO + value % 10
        value //= 10
    return at + count


@njit(cache=True)
def fill(
    parts: np.ndarray, bounds: np.ndarray, form: np.ndarray, rows: np.ndarray, blob: np.ndarray, starts: np.ndarray,
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
                for place in range(first, last):
                    out[at + place - first] = blob[place]
                at += last - first
                continue
            if value < 0:
                out[at] = MINUS
                at += 1
                value = -value
            if kind == WHOLE:
                at = _digits(out, at, value, 1)
                continue
            scale, decimals = (1000000, 6) if kind == MICROS else (1000, 3)
            at = _digits(out, at, value // scale, 1)
            out[at] = POINT
            at = _digits(out, at + 1, value % scale, decimals)
    return at
