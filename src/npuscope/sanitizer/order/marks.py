"""Who touched a segment last, compiled.

A segment's marks are a list, newest first, one per agent and role at most; lists share their tails and never change. A
write drops every mark that comes before it in order: whatever races with such a mark races with the write as well. A
read drops older reads for the same reason and keeps writes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.access import ATOMIC, CORE, IN_PLACE, IN_SPACE, OVERLAPS, OWN, OWN_MARK, PIPE, POLL, UNIT
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
    MARK,
    MARKS,
    NEXT,
    OLDER,
    ROLE,
)

WINDOW = 16
"""Instructions of one pipe that may overlap (sanitizer.md 3.8.3): an earlier one is done."""
CROWD = 256
"""Marks of a segment at most."""
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
    role, agent = now[OWN + ROLE] & 3, now[OWN + AGENT]
    head = segments[segment, MARK]
    dropped = -1
    length = 0
    mark = head
    while mark >= 0:
        theirs = marks[mark, ROLE] & 3
        done = ordered(marks, clock, foreign, now, mark)
        if not done and (theirs != role or (role == ATOMIC and (now[PIPE] == S or marks[mark, AGENT] % PIPES == S))):
            if now[OWN + ROLE] & POLL and marks[mark, AGENT] % PIPES == S and foreign.shape[0] > 1:
                take_over(clock, foreign, history, used, now[CORE], marks[mark, AGENT], marks[mark, CLOCK])
                done = True
            else:
                done = race(segments, marks, clock, found, index, used, now, segment, mark)
        if theirs == role and (done or (marks[mark, AGENT] == agent and not now[IN_PLACE])):
            dropped = mark
        length += 1
        mark = marks[mark, OLDER]
    if dropped < 0:
        if length >= CROWD:
            used[CROWDED] += 1
            return head
        return new_mark(marks, used, now[OWN:], head)
    kept = marks[dropped, OLDER]
    mark = head
    while mark != dropped:
        same = marks[mark, ROLE] & 3 == role
        own = marks[mark, AGENT] == agent and not now[IN_PLACE]
        if not same or (not own and not ordered(marks, clock, foreign, now, mark)):
            kept = new_mark(marks, used, marks[mark], kept)
        mark = marks[mark, OLDER]
    return new_mark(marks, used, now[OWN:], kept)


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
            kept += 1
    for page in range(pages.shape[0]):
        segment = pages[page, HEAD]
        while segment >= 0:
            if segments[segment, MARK] >= 0:
                segments[segment, MARK] = place[segments[segment, MARK]]
            segment = segments[segment, NEXT]
    used[MARKS] = kept
