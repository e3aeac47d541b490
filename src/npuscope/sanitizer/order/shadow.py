"""Who touched which bytes last, and whether they were ever written: segments of memory with marks, compiled.

Every page has a list of segments, ascending and apart; bytes that no segment holds were not touched. A segment's marks
are a list too, newest first, one per agent and role at most; lists share their tails and never change. A write drops
every mark that comes before it in order: whatever races with such a mark races with the write as well. A read drops
older reads for the same reason and keeps writes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.clocks import PIPES
from npuscope.sanitizer.order.events import FIX, MTE2, MTE3, M, S, V
from npuscope.sanitizer.order.state import (
    AUTO,
    COUNT,
    CROWDED,
    DEFINED,
    DETAIL,
    DETAILS,
    EARLIER,
    HIGH,
    KIND,
    LATER,
    LOW,
    MARKS as NODES,
    PAGE_BITS,
    PAIRS,
    RAW,
    SEGMENT_FREE,
    SEGMENTS,
    SPACE,
    WAR,
    WAW,
    State,
)
from npuscope.sanitizer.order.table import find, mixed

READ, WRITE, ATOMIC, UNIT = 0, 1, 2, 4
"""Roles, and what is added to a role for an instruction that works under a unit flag."""
WINDOW = 16
"""Instructions of one pipe that may overlap (sanitizer.md 3.8.3): an earlier one is done."""
CROWD = 256
"""Marks of a segment at most."""
UNIT_SPACE = 5  # L0C

CORE, PIPE, CLOCK, ROLE, OVERLAPS, DETAIL_ROW, IN_SPACE, MARKING, MEMO_IN, MEMO_OUT, OWN_MARK = range(11)
"""Places in `now`, the access that is being looked at. `OVERLAPS`: earlier instructions of the same pipe may not be
done; `MEMO_*`: the last list of marks that was met and what became of it; `OWN_MARK`: the mark of a write, -1 before
there is one."""
NOW = 11


# -- segments --------------------------------------------------------------------------------------------------------


@njit(cache=True)
def new_segment(st: State, start: int, end: int, mark: int, undefined: int, following: int) -> int:
    """A segment, not linked to what is before it."""
    segment = st.used[SEGMENT_FREE]
    if segment >= 0:
        st.used[SEGMENT_FREE] = st.segment_next[segment]
        st.used[SEGMENTS_FREE] -= 1
    else:
        segment = st.used[SEGMENTS]
        st.used[SEGMENTS] = segment + 1
    st.segment_start[segment] = start
    st.segment_end[segment] = end
    st.segment_mark[segment] = mark
    st.segment_undefined[segment] = undefined
    st.segment_next[segment] = following
    return segment


@njit(cache=True)
def free_segment(st: State, segment: int) -> None:
    """Give a segment back."""
    st.segment_next[segment] = st.used[SEGMENT_FREE]
    st.segment_mark[segment] = -1
    st.used[SEGMENT_FREE] = segment
    st.used[SEGMENTS_FREE] += 1


@njit(cache=True)
def cut(st: State, page: int, low: int, high: int, before: int) -> int:
    """Make segments tile `low` to `high` of a page exactly. `before` is a segment that ends at or before `low` (-1:
    none is known). Returns the segment before the first one that lies in the range (-1: it is the page's first)."""
    following = st.segment_next[before] if before >= 0 else st.heads[page]
    while following >= 0 and st.segment_end[following] <= low:
        before = following
        following = st.segment_next[following]
    if following >= 0 and st.segment_start[following] < low:
        before = following
        following = split(st, before, low)
    answer = before
    place = low
    while place < high:
        if following < 0 or st.segment_start[following] > place:
            stop = high if following < 0 else min(high, st.segment_start[following])
            fresh = new_segment(st, place, stop, -1, st.untouched[page], following)
            if before >= 0:
                st.segment_next[before] = fresh
            else:
                st.heads[page] = fresh
            before = fresh
        else:
            if st.segment_end[following] > high:
                split(st, following, high)
            before = following
            following = st.segment_next[following]
        place = st.segment_end[before]
    return answer


@njit(cache=True)
def split(st: State, segment: int, place: int) -> int:
    """Cut a segment in two at `place`; returns the right half."""
    right = new_segment(
        st, place, st.segment_end[segment], st.segment_mark[segment], st.segment_undefined[segment],
        st.segment_next[segment],
    )
    st.segment_end[segment] = place
    st.segment_next[segment] = right
    return right


@njit(cache=True)
def visit(st: State, page: int, low: int, high: int, before: int, now: np.ndarray, undefined: np.ndarray) -> int:
    """The access `now` touches `low` to `high` of a page: report what it races with, leave its mark, and add what it
    reads of bytes never written to `undefined` (bytes, first of them, value). Returns the last segment touched."""
    role = now[ROLE] & 3
    before = cut(st, page, low, high, before)
    segment = st.segment_next[before] if before >= 0 else st.heads[page]
    while True:
        if role != WRITE and st.segment_undefined[segment] != DEFINED:
            if undefined[0] == 0:
                undefined[1] = st.segment_start[segment]
                undefined[2] = st.segment_undefined[segment]
            undefined[0] += st.segment_end[segment] - st.segment_start[segment]
        if role != READ:
            st.segment_undefined[segment] = DEFINED
        if now[MARKING]:
            st.segment_mark[segment] = marked(st, segment, now)
        following = st.segment_next[segment]
        last = st.segment_end[segment] >= high
        if (
            before >= 0
            and st.segment_end[before] == st.segment_start[segment]
            and st.segment_mark[before] == st.segment_mark[segment]
            and st.segment_undefined[before] == st.segment_undefined[segment]
        ):
            st.segment_end[before] = st.segment_end[segment]
            st.segment_next[before] = following
            free_segment(st, segment)
        else:
            before = segment
        if last:
            return before
        segment = following


@njit(cache=True)
def set_undefined(st: State, page: int, low: int, high: int, value: int) -> None:
    """Note what is known of the content of `low` to `high` of a page."""
    before = cut(st, page, low, high, -1)
    segment = st.segment_next[before] if before >= 0 else st.heads[page]
    while segment >= 0 and st.segment_start[segment] < high:
        st.segment_undefined[segment] = value
        segment = st.segment_next[segment]


@njit(cache=True)
def clear_pages(st: State, first: int, stop: int) -> None:
    """Forget all segments of pages `first` to `stop`."""
    for page in range(first, stop):
        segment = st.heads[page]
        while segment >= 0:
            following = st.segment_next[segment]
            free_segment(st, segment)
            segment = following
        st.heads[page] = -1


# -- marks -----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def new_mark(st: State, detail: int, clock: int, agent: int, role: int, following: int) -> int:
    """A mark in front of a list."""
    mark = st.used[NODES]
    if mark >= st.mark_next.size:
        st.used[CROWDED] += 1
        return following
    st.used[NODES] = mark + 1
    st.mark_detail[mark] = detail
    st.mark_clock[mark] = clock
    st.mark_agent[mark] = agent
    st.mark_role[mark] = role
    st.mark_next[mark] = following
    return mark


@njit(cache=True)
def own_mark(st: State, now: np.ndarray, following: int) -> int:
    """The mark of the access `now`."""
    return new_mark(st, now[DETAIL_ROW], now[CLOCK], now[CORE] * PIPES + now[PIPE], now[ROLE], following)


@njit(cache=True)
def copied(st: State, mark: int, following: int) -> int:
    """A mark once more, in front of another list."""
    return new_mark(
        st, st.mark_detail[mark], st.mark_clock[mark], st.mark_agent[mark], st.mark_role[mark], following
    )


@njit(cache=True)
def ordered(st: State, mark: int, now: np.ndarray) -> bool:
    """Whether the access of `mark` is known to be done when `now` begins."""
    agent, clock = st.mark_agent[mark], st.mark_clock[mark]
    core, pipe = now[CORE], now[PIPE]
    if agent // PIPES != core:
        return clock <= st.foreign_rows[st.foreign[core, pipe], agent]
    other = agent % PIPES
    if other == pipe and (now[OVERLAPS] == 0 or now[CLOCK] - clock > WINDOW or now[CLOCK] == clock):
        return True
    if now[ROLE] & UNIT and st.mark_role[mark] & UNIT and now[IN_SPACE] == UNIT_SPACE and other + pipe == M + FIX:
        return True
    return clock <= st.known[core, pipe, other]


@njit(cache=True)
def marked(st: State, segment: int, now: np.ndarray) -> int:
    """The list of marks of a segment after the access `now`."""
    head = st.segment_mark[segment]
    if now[MEMO_OUT] >= 0 and now[MEMO_IN] == head:
        return now[MEMO_OUT]
    if now[ROLE] & 3 == WRITE:
        answer = overwritten(st, head, segment, now)
    else:
        answer = touched(st, head, segment, now)
    now[MEMO_IN] = head
    now[MEMO_OUT] = answer
    return answer


@njit(cache=True)
def overwritten(st: State, head: int, segment: int, now: np.ndarray) -> int:
    """What a write leaves of a list: itself, and what it races with."""
    kept = -1
    mark = head
    agent = now[CORE] * PIPES + now[PIPE]
    while mark >= 0:
        if not ordered(st, mark, now) and not race(st, mark, segment, now) and st.mark_agent[mark] != agent:
            kept = copied(st, mark, kept)
        mark = st.mark_next[mark]
    if kept >= 0:
        return own_mark(st, now, kept)
    if now[OWN_MARK] < 0:
        now[OWN_MARK] = own_mark(st, now, -1)
    return now[OWN_MARK]


@njit(cache=True)
def touched(st: State, head: int, segment: int, now: np.ndarray) -> int:
    """What a read or an atomic write leaves of a list: itself in front, older ones of its role that it follows dropped."""
    role = now[ROLE] & 3
    agent = now[CORE] * PIPES + now[PIPE]
    dropped = -1
    length = 0
    mark = head
    while mark >= 0:
        theirs = st.mark_role[mark] & 3
        done = ordered(st, mark, now)
        if not done and (theirs != role or (role == ATOMIC and (now[PIPE] == S or st.mark_agent[mark] % PIPES == S))):
            done = race(st, mark, segment, now)
        if theirs == role and (done or st.mark_agent[mark] == agent):
            dropped = mark
        length += 1
        mark = st.mark_next[mark]
    if dropped < 0:
        if length >= CROWD:
            st.used[CROWDED] += 1
            return head
        return own_mark(st, now, head)
    kept = st.mark_next[dropped]
    mark = head
    while mark != dropped:
        if st.mark_role[mark] & 3 != role or (st.mark_agent[mark] != agent and not ordered(st, mark, now)):
            kept = copied(st, mark, kept)
        mark = st.mark_next[mark]
    return own_mark(st, now, kept)


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
def race(st: State, mark: int, segment: int, now: np.ndarray) -> bool:
    """Report a pair. True where the device compiler would order it, which then counts as done."""
    core, pipe = now[CORE], now[PIPE]
    agent, clock = st.mark_agent[mark], st.mark_clock[mark]
    other = agent % PIPES
    automatic = agent // PIPES == core and st.auto[core] and compiler_orders(other, pipe)
    theirs, mine = st.mark_role[mark] & 3, now[ROLE] & 3
    kind = RAW if mine == READ else (WAR if theirs == READ else WAW)
    report(st, mark, segment, now, kind, automatic)
    if automatic:
        st.known[core, pipe, other] = max(st.known[core, pipe, other], clock)
        if pipe == S:
            st.version[core] += 1
    return automatic


@njit(cache=True)
def report(st: State, mark: int, segment: int, now: np.ndarray, kind: int, automatic: bool) -> None:
    """Count a pair of lines; its first occurrence on a core is kept in full."""
    earlier, later = st.details[st.mark_detail[mark]], st.details[now[DETAIL_ROW]]
    key = mixed(earlier[0] * 2 + automatic) ^ mixed(later[0] * 4 + kind + (1 << 40)) ^ mixed(now[CORE] + (1 << 50))
    key = mixed(key ^ mixed(earlier[1] * 4096 + later[1] + (1 << 60))) | 1
    slot = find(st.pair_keys, key)
    if st.pair_keys[slot] == key:
        st.pairs[st.pair_slots[slot], COUNT] += 1
        return
    number = st.used[PAIRS]
    if number >= st.pairs.shape[0]:
        st.used[CROWDED] += 1
        return
    st.used[PAIRS] = number + 1
    st.pair_keys[slot] = key
    st.pair_slots[slot] = number
    row = st.pairs[number]
    row[KIND], row[AUTO], row[SPACE], row[COUNT] = kind, automatic, now[IN_SPACE], 1
    row[LOW], row[HIGH] = st.segment_start[segment], st.segment_end[segment]
    row[EARLIER], row[EARLIER + 1] = st.mark_role[mark] & 3, st.mark_agent[mark]
    row[LATER], row[LATER + 1] = now[ROLE] & 3, now[CORE] * PIPES + now[PIPE]
    for column in range(DETAIL):
        row[EARLIER + 2 + column] = earlier[column]
        row[LATER + 2 + column] = later[column]


# -- room ------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def compact(st: State) -> None:
    """Drop marks and details that no segment refers to any more. Lists keep their order: a mark's successor is always
    older, so has a smaller number."""
    marks = st.used[NODES]
    alive = np.zeros(marks + 1, np.bool_)
    for page in range(st.heads.size):
        segment = st.heads[page]
        while segment >= 0:
            mark = st.segment_mark[segment]
            while mark >= 0 and not alive[mark]:
                alive[mark] = True
                mark = st.mark_next[mark]
            segment = st.segment_next[segment]
    wanted = np.zeros(st.details.shape[0], np.bool_)
    for mark in range(marks):
        if alive[mark]:
            wanted[st.mark_detail[mark]] = True
    detail_now = np.zeros(st.details.shape[0], np.int32)
    details = 0
    for detail in range(st.details.shape[0]):
        if wanted[detail]:
            detail_now[detail] = details
            st.details[details, :] = st.details[detail, :]
            details += 1
    mark_now = np.full(marks + 1, -1, np.int32)
    kept = 0
    for mark in range(marks):
        if alive[mark]:
            mark_now[mark] = kept
            following = st.mark_next[mark]
            st.mark_detail[kept] = detail_now[st.mark_detail[mark]]
            st.mark_clock[kept] = st.mark_clock[mark]
            st.mark_agent[kept] = st.mark_agent[mark]
            st.mark_role[kept] = st.mark_role[mark]
            st.mark_next[kept] = mark_now[following] if following >= 0 else -1
            kept += 1
    for page in range(st.heads.size):
        segment = st.heads[page]
        while segment >= 0:
            if st.segment_mark[segment] >= 0:
                st.segment_mark[segment] = mark_now[st.segment_mark[segment]]
            segment = st.segment_next[segment]
    st.used[NODES] = kept
    st.used[DETAILS] = details
