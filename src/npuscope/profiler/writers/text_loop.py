"""The compiled loop that lays out rows of text (npuscope.profiler.writers.text_rows)."""

from __future__ import annotations

import numpy as np
from numba import njit

LITERAL, TEXT, WHOLE, MICROS, NANOS, HEX = range(6)
MINUS, POINT, ZERO, LETTERS = ord("-"), ord("."), ord("0"), ord("a") - 10


@njit(cache=True, error_model="numpy")
def fill(
    parts: np.ndarray,
    bounds: np.ndarray,
    form: np.ndarray,
    rows: np.ndarray,
    begin: int,
    end_row: int,
    blob: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
) -> int:
    """Write the rows from `begin` up to `end_row` by their forms into `out`, which must have the room; the number of
    bytes written.

    There is one way through the loop for all kinds of fields, so that little has to be compiled: a text, or else a
    sign, a whole part and a fraction, both as decimal digits (or the whole part in hexadecimal ones)."""
    at = 0
    for row in range(begin, end_row):
        number = form[row]
        for part in range(bounds[number], bounds[number + 1]):
            kind, value = parts[part, 0], parts[part, 1]
            if kind != LITERAL:
                value = rows[value, row]
            if kind <= TEXT:
                first, size = starts[value], starts[value + 1] - starts[value]
                # Without a sign no place can count from the end, and bytes are copied many at a time.
                source, target = np.uint64(first), np.uint64(at)
                for place in range(np.uint64(size)):
                    out[target + place] = blob[source + place]
                at += size
                continue
            if value < 0:
                if kind == HEX:
                    continue
                out[at] = MINUS
                at += 1
                value = -value
            # Without a sign, dividing by a constant is a multiplication.
            rest, decimals = np.uint64(value), 0
            whole = rest
            if kind == HEX:
                end = at + 1
                while whole >= np.uint64(16):
                    whole >>= np.uint64(4)
                    end += 1
                for place in range(end - 1, at - 1, -1):
                    digit = np.int64(rest & np.uint64(15))
                    out[place] = digit + (ZERO if digit < 10 else LETTERS)
                    rest >>= np.uint64(4)
                at = end
                continue
            if kind == MICROS:
                whole, decimals = rest // np.uint64(1000000), 6
                rest -= whole * np.uint64(1000000)
            elif kind == NANOS:
                whole, decimals = rest // np.uint64(1000), 3
                rest -= whole * np.uint64(1000)
            end, limit = at + 1, np.uint64(10)
            while whole >= limit and end < at + 19:
                limit *= np.uint64(10)
                end += 1
            for place in range(end - 1, at - 1, -1):
                tens = whole // np.uint64(10)
                out[place] = np.int64(whole - tens * np.uint64(10)) + ZERO
                whole = tens
            at = end
            if decimals:
                out[at] = POINT
                at += 1 + decimals
                for place in range(at - 1, at - 1 - decimals, -1):
                    tens = rest // np.uint64(10)
                    out[place] = np.int64(rest - tens * np.uint64(10)) + ZERO
                    rest = tens
    return at
