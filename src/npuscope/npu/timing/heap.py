"""The events of the compiled schedule, a heap of (time, number); of equal times the smaller number comes first."""

from __future__ import annotations

from npuscope.npu.timing.book import N_EVENTS, Book
from npuscope.npu.timing.compiled import inner


@inner
def push(book: Book, time: float, number: int) -> None:
    """Put one in."""
    times, numbers = book.event_times, book.events
    place = book.counts[N_EVENTS]
    book.counts[N_EVENTS] += 1
    while place > 0:
        above = (place - 1) // 2
        if times[above] < time or (times[above] == time and numbers[above] <= number):
            break
        times[place], numbers[place] = times[above], numbers[above]
        place = above
    times[place], numbers[place] = time, number


@inner
def pop(book: Book) -> None:
    """Take the first out, which the caller has read at place 0."""
    times, numbers = book.event_times, book.events
    book.counts[N_EVENTS] -= 1
    size = book.counts[N_EVENTS]
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
