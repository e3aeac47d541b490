"""The events of the compiled schedule, a heap of (time, number); of equal times the smaller number comes first."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.layout import Record


@inner
def push(events: np.ndarray, counts: Record, time: float, number: int) -> None:
    """Put one in."""
    place = counts.events
    counts.events = place + 1
    while place > 0:
        above = events[(place - 1) // 2]
        if above.time < time or (above.time == time and above.number <= number):
            break
        events[place].time = above.time
        events[place].number = above.number
        place = (place - 1) // 2
    events[place].time = time
    events[place].number = number


@inner
def pop(events: np.ndarray, counts: Record) -> None:
    """Take the first out, which the caller has read at place 0."""
    size = counts.events - 1
    counts.events = size
    time, number = events[size].time, events[size].number
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        one, other = events[below], events[below + 1]  # behind the last event there is room for another
        if below + 1 < size and (other.time < one.time or (other.time == one.time and other.number < one.number)):
            below += 1
            one = other
        if time < one.time or (time == one.time and number <= one.number):
            break
        events[place].time = one.time
        events[place].number = one.number
        place = below
    events[place].time = time
    events[place].number = number
