"""A heap of (time, number) for the compiled schedule; of equal times the smaller number comes first."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def push(times: np.ndarray, numbers: np.ndarray, size: int, time: float, number: int) -> int:
    """Put one in; returns the new size."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if times[above] < time or (times[above] == time and numbers[above] <= number):
            break
        times[place], numbers[place] = times[above], numbers[above]
        place = above
    times[place], numbers[place] = time, number
    return size + 1


@njit(cache=True)
def pop(times: np.ndarray, numbers: np.ndarray, size: int) -> int:
    """Take the first out, which the caller has read at place 0; returns the new size."""
    size -= 1
    time, number = times[size], numbers[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            times[other] < times[below] or (times[other] == times[below] and numbers[other] < numbers[below])
        ):
            below = other
        if time < times[below] or (time == times[below] and number <= numbers[below]):
            break
        times[place], numbers[place] = times[below], numbers[below]
        place = below
    times[place], numbers[place] = time, number
    return size
