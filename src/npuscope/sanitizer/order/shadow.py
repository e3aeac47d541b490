"""Who touched which bytes last, and whether they were ever written: segments of memory with marks, compiled.

Every page has a list of segments, ascending and apart; bytes that no segment holds were not touched. A segment's marks
are a list too, newest first, one per agent and role at most; lists share their tails and never change. A write drops
every mark that comes before it in order: whatever races with such a mark races with the write as well. A read drops
older reads for the same reason and keeps writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from npuscope.sanitizer.order.clocks import PIPES, take_over
from npuscope.sanitizer.order.events import MTE2, MTE3, S, V
from npuscope.sanitizer.order.state import (
    AGENT,
    AUTO,
    CLOCK,
    COMPILER,
    CROWDED,
    DEFINED,
    DETAIL,
    DETAILS,
    EARLIER,
    END,
    FINGER,
    FOREIGN,
    FOUND,
    HEAD,
    HIGH,
    INDEXED,
    KIND,
    LATER,
    LOW,
    MARK,
    MARKS,
    NEXT,
    OLDER,
    RAW,
    ROLE,
    SAME,
    SEGMENT_FREE,
    SEGMENTS,
    SEGMENTS_FREE,
    SPACE,
    START,
    TIMES,
    UNDEFINED,
    UNTOUCHED,
    VERSION,
    WAR,
    WAW,
)
from npuscope.sanitizer.order.table import KEY, VALUE, find, mixed

NOBODY: Any = np.int64(-1)
"""No segment and no mark; typed as variables are, a literal would have functions compiled once more for it."""
READ, WRITE, ATOMIC, UNIT, POLL, UNCHANGED = 0, 1, 2, 4, 8, 16
"""Roles, and what is added to a role: UNIT for an instruction that works under a unit flag, POLL for a scalar load that
a loop makes until it sees what another core's scalar unit stores, UNCHANGED for a write of what is there already."""
WINDOW = 16
"""Instructions of one pipe that may overlap (sanitizer.md 3.8.3): an earlier one is done."""
CROWD = 256
"""Marks of a segment at most."""
UNIT_SPACE = 5  # L0C

CORE, PIPE, OVERLAPS, IN_SPACE, MARKING, IN_PLACE, MEMO_IN, MEMO_OUT, OWN_MARK, OWN = range(10)
"""Places in `now`, the access that is being looked at. `OVERLAPS`: earlier instructions of the same pipe may not be
done; `IN_PLACE`: the same instruction writes what it reads here; `MEMO_*`: the last list of marks that was met and what
became of it; `OWN_MARK`: the mark of a write, -1 before there is one; from OWN on, the mark that the access leaves."""
NOW = OWN + DETAIL + DETAILS


# -- segments --------------------------------------------------------------------------------------------------------


@njit(cache=True)
def new_segment(
    segments: np.ndarray, used: np.ndarray, start: int, end: int, mark: int, undefined: int, following: int
) -> int:
    """A segment, not linked to what is before it."""
    segment = used[SEGMENT_FREE]
    if segment >= 0:
        used[SEGMENT_FREE] = segments[segment, NEXT]
        used[SEGMENTS_FREE] -= 1
    else:
        segment = used[SEGMENTS]
        used[SEGMENTS] = segment + 1
    segments[segment, START] = start
    segments[segment, END] = end
    segments[segment, MARK] = mark
    segments[segment, UNDEFINED] = undefined
    segments[segment, NEXT] = following
    return segment


@njit(cache=True)
def free_segment(segments: np.ndarray, used: np.ndarray, segment: int) -> None:
    """Give a segment back."""
    segments[segment, NEXT] = used[SEGMENT_FREE]
    used[SEGMENT_FREE] = segment
    used[SEGMENTS_FREE] += 1


@njit(cache=True)
def split(segments: np.ndarray, used: np.ndarray, segment: int, place: int) -> int:
    """Cut a segment in two at `place`; returns the right half."""
    right = new_segment(
        segments, used, place, segments[segment, END], segments[segment, MARK], segments[segment, UNDEFINED],
        segments[segment, NEXT],
    )
    segments[segment, END] = place
    segments[segment, NEXT] = right
    return right


@njit(cache=True)
def cut(
    pages: np.ndarray, segments: np.ndarray, used: np.ndarray, page: int, low: int, high: int, before: int
) -> int:
    """Make segments tile `low` to `high` of a page exactly. `before` is a segment that ends at or before `low` (-1:
    none is known). Returns the segment before the first one that lies in the range (-1: it is the page's first)."""
    if before < 0:
        finger = pages[page, FINGER]
        if finger >= 0 and segments[finger, END] <= low:
            before = finger
    following = segments[before, NEXT] if before >= 0 else pages[page, HEAD]
    while following >= 0 and segments[following, END] <= low:
        before = following
        following = segments[following, NEXT]
    if following >= 0 and segments[following, START] < low:
        before = following
        following = split(segments, used, before, low)
    answer = before
    place = low
    while place < high:
        if following < 0 or segments[following, START] > place:
            stop = high if following < 0 else min(high, segments[following, START])
            fresh = new_segment(segments, used, place, stop, NOBODY, pages[page, UNTOUCHED], following)
            if before >= 0:
                segments[before, NEXT] = fresh
            else:
                pages[page, HEAD] = fresh
            before = fresh
        else:
            if segments[following, END] > high:
                split(segments, used, following, high)
            before = following
            following = segments[following, NEXT]
        place = segments[before, END]
    return answer


@njit(cache=True)
def visit(
    pages: np.ndarray, segments: np.ndarray, marks: np.ndarray, clock: np.ndarray, foreign: np.ndarray,
    history: np.ndarray, found: np.ndarray, index: np.ndarray, used: np.ndarray, now: np.ndarray,
    undefined: np.ndarray, page: int, low: int, high: int, before: int,
) -> int:
    """The access `now` touches `low` to `high` of a page: report what it races with, leave its mark, and add what it
    reads of bytes never written to `undefined` (bytes, first of them, value). Returns the last segment touched."""
    role = now[OWN + ROLE] & 3
    before = cut(pages, segments, used, page, low, high, before)
    segment = segments[before, NEXT] if before >= 0 else pages[page, HEAD]
    while True:
        if role != WRITE and segments[segment, UNDEFINED] != DEFINED:
            if undefined[0] == 0:
                undefined[1] = segments[segment, START]
                undefined[2] = segments[segment, UNDEFINED]
            undefined[0] += segments[segment, END] - segments[segment, START]
        if role != READ:
            segments[segment, UNDEFINED] = DEFINED
        if now[MARKING]:
            head = segments[segment, MARK]
            if now[MEMO_OUT] < 0 or now[MEMO_IN] != head:
                if role == WRITE:
                    now[MEMO_OUT] = overwritten(segments, marks, clock, foreign, found, index, used, now, segment)
                else:
                    now[MEMO_OUT] = touched(
                        segments, marks, clock, foreign, history, found, index, used, now, segment
                    )
                now[MEMO_IN] = head
            segments[segment, MARK] = now[MEMO_OUT]
        following = segments[segment, NEXT]
        last = segments[segment, END] >= high
        if (
            before >= 0
            and segments[before, END] == segments[segment, START]
            and segments[before, MARK] == segments[segment, MARK]
            and segments[before, UNDEFINED] == segments[segment, UNDEFINED]
        ):
            segments[before, END] = segments[segment, END]
            segments[before, NEXT] = following
            free_segment(segments, used, segment)
        else:
            before = segment
        if last:
            pages[page, FINGER] = before
            return before
        segment = following


@njit(cache=True)
def set_undefined(
    pages: np.ndarray, segments: np.ndarray, used: np.ndarray, page: int, low: int, high: int, value: int
) -> None:
    """Note what is known of the content of `low` to `high` of a page."""
    before = cut(pages, segments, used, page, low, high, NOBODY)
    segment = segments[before, NEXT] if before >= 0 else pages[page, HEAD]
    while segment >= 0 and segments[segment, START] < high:
        segments[segment, UNDEFINED] = value
        segment = segments[segment, NEXT]


@njit(cache=True)
def clear_pages(pages: np.ndarray, segments: np.ndarray, used: np.ndarray, first: int, stop: int) -> None:
    """Forget all segments of pages `first` to `stop`."""
    for page in range(first, stop):
        segment = pages[page, HEAD]
        while segment >= 0:
            following = segments[segment, NEXT]
            free_segment(segments, used, segment)
            segment = following
        pages[page, HEAD] = pages[page, FINGER] = -1


# -- marks -----------------------------------------------------------------------------------------------------------


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


# -- races -----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def compiler_orders(one: int, other: int) -> bool:
    """Pipe pairs of a vector core that the device compiler's auto-sync orders (sanitizer.md 3.8.2)."""
    if one == other:
        return one == V
    if one == S:
        return other == V or other == MTE2 or other == MTE3
    return other == S and (one == V or one == MTE2 or one == MTE3)


@njit(cache=True)
def race(
    segments: np.ndarray, marks: np.ndarray, clock: np.ndarray, found: np.ndarray, index: np.ndarray,
    used: np.ndarray, now: np.ndarray, segment: int, mark: int,
) -> bool:
    """Report a pair. True where the device compiler would order it, which then counts as done."""
    core, pipe = now[CORE], now[PIPE]
    agent = marks[mark, AGENT]
    other = agent % PIPES
    compiler = agent // PIPES == core and clock[core, S, AUTO] != 0 and compiler_orders(other, pipe)
    kind = WAR if marks[mark, ROLE] & 3 == READ else WAW
    if now[OWN + ROLE] & 3 == READ:
        kind = RAW
    elif kind == WAW and now[OWN + ROLE] & UNCHANGED:
        kind = SAME
    report(segments, marks, found, index, used, now, segment, mark, kind, compiler)
    if compiler:
        for known in range(PIPES):  # the compiler's flag tells all that its pipe knows, as any flag does
            clock[core, pipe, known] = max(clock[core, pipe, known], clock[core, other, known])
        clock[core, pipe, other] = max(clock[core, pipe, other], marks[mark, CLOCK])
        if pipe == S:
            clock[core, S, VERSION] += 1
    return compiler


@njit(cache=True)
def report(
    segments: np.ndarray, marks: np.ndarray, found: np.ndarray, index: np.ndarray, used: np.ndarray, now: np.ndarray,
    segment: int, mark: int, kind: int, compiler: bool,
) -> None:
    """Count a pair of lines; its first occurrence on a core is kept in full."""
    key = mixed(marks[mark, DETAIL] * 2 + compiler) ^ mixed(now[OWN + DETAIL] * 8 + kind + (1 << 40))
    key = mixed(key ^ mixed(marks[mark, DETAIL + 1] * 4096 + now[OWN + DETAIL + 1] + (1 << 60)))
    key = mixed(key ^ mixed(now[CORE] + (1 << 50))) | 1
    number = entry(found, index, used, key)
    if number < 0:
        return
    row = found[number]
    row[KIND], row[COMPILER], row[SPACE] = kind, compiler, now[IN_SPACE]
    row[LOW], row[HIGH] = segments[segment, START], segments[segment, END]
    row[EARLIER], row[EARLIER + 1] = marks[mark, ROLE] & 3, marks[mark, AGENT]
    row[LATER], row[LATER + 1] = now[OWN + ROLE] & 3, now[OWN + AGENT]
    for column in range(DETAILS):
        row[EARLIER + 2 + column] = marks[mark, DETAIL + column]
        row[LATER + 2 + column] = now[OWN + DETAIL + column]


@njit(cache=True)
def entry(found: np.ndarray, index: np.ndarray, used: np.ndarray, key: int) -> int:
    """A new row of `found` for `key`; -1 where there is one already, which is counted, or where the table is full."""
    slot = find(index, key)
    if index[slot, KEY] == key:
        found[index[slot, VALUE], TIMES] += 1
        return -1
    number = used[FOUND]
    if number >= found.shape[0]:
        used[CROWDED] += 1
        return -1
    used[FOUND] = number + 1
    used[INDEXED] += 1
    index[slot, KEY] = key
    index[slot, VALUE] = number
    for column in range(found.shape[1]):
        found[number, column] = 0
    found[number, TIMES] = 1
    return number


# -- room ------------------------------------------------------------------------------------------------------------


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
