"""Who touched a segment last, compiled.

A segment's marks are a list, newest first, one per agent and role at most; lists share their tails and never change. A
write drops every mark that comes before it in order: whatever races with such a mark races with the write as well. A
read drops older reads for the same reason and keeps writes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.access import CORE, IN_PLACE, IN_SPACE, OVERLAPS, OWN, OWN_MARK, PIPE, POLL, READ, UNIT
from npuscope.sanitizer.order.clocks import PIPES, take_over
from npuscope.sanitizer.order.events import S
from npuscope.sanitizer.order.races import race
from npuscope.sanitizer.order.segments import NOBODY
from npuscope.sanitizer.order.state import (
    AGENT,
    CLOCK,
    CROWDED,
    DETAIL,
    DETAILS,
    FOREIGN,
    HEAD,
    LENGTH,
    MARK,
    MARKS,
    NEXT,
    OLDER,
    ROLE,
    WRITES,
)

WINDOW = 16
"""Instructions of one pipe that may overlap (sanitizer.md 3.8.3): an earlier one is done."""
SHORT = 32
"""Marks of a segment that are gone through at every read."""
UNIT_SPACE = 5  # L0C


@njit(cache=True)
def new_mark(marks: np.ndarray, used: np.ndarray, what: np.ndarray, older: int) -> int:
    """A mark like `what` in front of a list."""
    mark = used[MARKS]
    if mark >= marks.shape[0]:
        used[CROWDED] += 1
        return older
    used[MARKS] = mark + 1
    for column in range(DETAIL + DETAILS):
        marks[mark, column] = what[column]
    marks[mark, OLDER] = older
    marks[mark, LENGTH] = 1 + (marks[older, LENGTH] if older >= 0 else 0)
    marks[mark, WRITES] = mark
    if what[ROLE] & 3 == READ:
        marks[mark, WRITES] = marks[older, WRITES] if older >= 0 else NOBODY
    return mark


@njit(cache=True)
def ordered(marks: np.ndarray, clock: np.ndarray, foreign: np.ndarray, now: np.ndarray, mark: int) -> bool:
    """Whether the access of `mark` is known to be done when `now` begins."""
    agent, then = marks[mark, AGENT], marks[mark, CLOCK]
    core, pipe = now[CORE], now[PIPE]
    if agent // PIPES != core:
        return then <= foreign[clock[core, pipe, FOREIGN], agent]
    other = agent % PIPES
    mine = now[OWN + CLOCK]
    if other == pipe and (now[OVERLAPS] == 0 or mine - then > WINDOW or mine == then):
        return True
    both = now[OWN + ROLE] & marks[mark, ROLE]
    if both & UNIT and now[IN_SPACE] == UNIT_SPACE and other != pipe:
        return True
    return then <= clock[core, pipe, other]


@njit(cache=True)
def overwritten(
    segments: np.ndarray, marks: np.ndarray, clock: np.ndarray, foreign: np.ndarray, found: np.ndarray,
    index: np.ndarray, used: np.ndarray, now: np.ndarray, segment: int,
) -> int:
    """What a write leaves of a segment's marks: itself, and what it races with."""
    kept = NOBODY
    mark = segments[segment, MARK]
    while mark >= 0:
        if (
            not ordered(marks, clock, foreign, now, mark)
            and not (marks[mark, ROLE] & POLL and now[PIPE] == S)
            and not race(segments, marks, clock, found, index, used, now, segment, mark)
            and marks[mark, AGENT] != now[OWN + AGENT]
        ):
            kept = new_mark(marks, used, marks[mark], kept)
        mark = marks[mark, OLDER]
    if kept >= 0:
        return new_mark(marks, used, now[OWN:], kept)
    if now[OWN_MARK] < 0:
        now[OWN_MARK] = new_mark(marks, used, now[OWN:], NOBODY)
    return now[OWN_MARK]


@njit(cache=True)
def touched(
    segments: np.ndarray, marks: np.ndarray, clock: np.ndarray, foreign: np.ndarray, history: np.ndarray,
    found: np.ndarray, index: np.ndarray, used: np.ndarray, now: np.ndarray, segment: int,
) -> int:
    """What a read or an atomic write leaves of a segment's marks: itself in front; of its role, those dropped that come
    before it."""
    role = now[OWN + ROLE] & 3
    head = segments[segment, MARK]
    mark = head
    if role == READ and head >= 0:
        mark = marks[head, WRITES]
    while mark >= 0:
        met = marks[mark, ROLE] & 3 != role or now[PIPE] == S or marks[mark, AGENT] % PIPES == S
        if met and not ordered(marks, clock, foreign, now, mark):
            if now[OWN + ROLE] & POLL and marks[mark, AGENT] % PIPES == S and foreign.shape[0] > 1:
                take_over(clock, foreign, history, used, now[CORE], marks[mark, AGENT], marks[mark, CLOCK])
            else:
                race(segments, marks, clock, found, index, used, now, segment, mark)
        mark = marks[mark, OLDER]
        if role == READ and mark >= 0:
            mark = marks[mark, WRITES]
    return new_mark(marks, used, now[OWN:], pruned(marks, clock, foreign, used, now, head))


@njit(cache=True)
def pruned(
    marks: np.ndarray, clock: np.ndarray, foreign: np.ndarray, used: np.ndarray, now: np.ndarray, head: int
) -> int:
    """A list without the marks of the role of `now` that come before it. A long list is gone through only now and then:
    many cores may read the same bytes, mostly each of them many times in a row."""
    if head < 0:
        return head
    length = marks[head, LENGTH]
    if length > SHORT and length & (length - 1) != 0:
        return marks[head, OLDER] if superseded(marks, clock, foreign, now, head) else head
    dropped = NOBODY
    mark = head
    while mark >= 0:
        if superseded(marks, clock, foreign, now, mark):
            dropped = mark
        mark = marks[mark, OLDER]
    if dropped < 0:
        return head
    kept = marks[dropped, OLDER]
    mark = head
    while mark != dropped:
        if not superseded(marks, clock, foreign, now, mark):
            kept = new_mark(marks, used, marks[mark], kept)
        mark = marks[mark, OLDER]
    return kept


@njit(cache=True)
def superseded(marks: np.ndarray, clock: np.ndarray, foreign: np.ndarray, now: np.ndarray, mark: int) -> bool:
    """Whether what races with a mark races with the access `now` too, which is of the same role: it is of the same
    agent, or comes after it."""
    if marks[mark, ROLE] & 3 != now[OWN + ROLE] & 3:
        return False
    if marks[mark, AGENT] == now[OWN + AGENT] and not now[IN_PLACE]:
        return True
    return ordered(marks, clock, foreign, now, mark)


@njit(cache=True)
def compact(
    pages: np.ndarray, segments: np.ndarray, marks: np.ndarray, used: np.ndarray, place: np.ndarray
) -> None:
    """Drop marks that no segment refers to any more. The order stays, and a mark's successor is always the older of the
    two, so it has moved already when the mark does. `place`, a number for each mark, comes in as -1."""
    count = used[MARKS]
    for page in range(pages.shape[0]):
        segment = pages[page, HEAD]
        while segment >= 0:
            mark = segments[segment, MARK]
            while mark >= 0 and place[mark] < 0:
                place[mark] = 0
                mark = marks[mark, OLDER]
            segment = segments[segment, NEXT]
    kept = 0
    for mark in range(count):
        if place[mark] == 0:
            place[mark] = kept
            for column in range(DETAIL + DETAILS):
                marks[kept, column] = marks[mark, column]
            if marks[kept, OLDER] >= 0:
                marks[kept, OLDER] = place[marks[kept, OLDER]]
            if marks[kept, WRITES] >= 0:
                marks[kept, WRITES] = place[marks[kept, WRITES]]
            kept += 1
    for page in range(pages.shape[0]):
        segment = pages[page, HEAD]
        while segment >= 0:
            if segments[segment, MARK] >= 0:
                segments[segment, MARK] = place[segments[segment, MARK]]
            segment = segments[segment, NEXT]
    used[MARKS] = kept
