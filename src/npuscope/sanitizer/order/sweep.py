"""The loop over the rows of a batch, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from npuscope.sanitizer.order import clocks
from npuscope.sanitizer.order.events import ALL, FULL_TILE, MTE2, MTE3, Action, M, S, Use, V
from npuscope.sanitizer.order.shadow import (
    ATOMIC,
    CLOCK,
    CORE,
    DETAIL_ROW,
    IN_SPACE,
    MARKING,
    MEMO_OUT,
    NOW,
    OVERLAPS,
    OWN_MARK,
    PIPE,
    READ,
    ROLE,
    UNIT,
    WRITE,
    clear_pages,
    set_undefined,
    visit,
)
from npuscope.sanitizer.order.state import (
    ADDRESS,
    BUFFER,
    BYTES,
    CROWDED,
    DEFINED,
    DETAIL,
    DETAILS,
    FIRST_BYTE,
    FOOTPRINT,
    FOREIGN_ROWS,
    FROM_ORIGIN,
    MARKS,
    MESSAGES,
    OPCODE,
    ORIGIN,
    ORIGINS,
    PAGE_BITS,
    READS,
    ROOM,
    ROW,
    SCRATCH,
    SEGMENTS,
    SEGMENTS_FREE,
    SITE,
    USE_COUNT,
    USE_SPACE,
    USER,
    State,
)
from npuscope.sanitizer.order.table import find, mixed

NONE, SET_FLAG, WAIT_FLAG, BARRIER = int(Action.NONE), int(Action.SET_FLAG), int(Action.WAIT_FLAG), int(Action.BARRIER)
CROSS_SET, CROSS_WAIT, SYNC_ALL = int(Action.CROSS_SET), int(Action.CROSS_WAIT), int(Action.SYNC_ALL)
EXCHANGE, PASS_ON, TAKE_OVER = int(Action.EXCHANGE), int(Action.PASS_ON), int(Action.TAKE_OVER)
POST, NOTIFY, WAIT_NOTIFY = int(Action.POST), int(Action.NOTIFY), int(Action.WAIT_NOTIFY)
DATA_BARRIER, KERNEL_END = int(Action.DATA_BARRIER), int(Action.KERNEL_END)
MULTIPLY, FIXPIPE = int(Action.MULTIPLY), int(Action.FIXPIPE)
FINAL, LANES, EACH, BLOCKS, NOTHING = (int(use) for use in Use)

FRAMEWORK = 1
SOFT_SYNC = 2
IN_SEQUENCE = 3
GM = 0
LIBRARY_FLAG = 15
"""Stands for the id of a flag that the library sets and waits for in one go: queue flags begin at 16, a program's ids
end below."""

FLAG_KEY, TICKET_KEY, SOFT_KEY, SLOT_KEY, CHAIN_KEY, SERVER_KEY = (number << 60 for number in range(1, 7))


class Tables(NamedTuple):
    """What a batch brings: its rows, and the tables that they refer to."""

    instruction: np.ndarray
    access: np.ndarray
    first: int  # row number of the batch's first instruction
    action: np.ndarray
    use: np.ndarray
    slot_of_pipe: np.ndarray
    run_first: np.ndarray
    run_start: np.ndarray
    run_end: np.ndarray
    ordered_first: np.ndarray
    ordered_start: np.ndarray
    ordered_end: np.ndarray
    explicit_first: np.ndarray
    explicit_start: np.ndarray
    explicit_end: np.ndarray
    explicit_lowest: int
    buffer_space: np.ndarray
    buffer_core: np.ndarray
    buffer_page: np.ndarray  # first page of a GM buffer's region
    region_low: np.ndarray  # bounds of that region
    region_high: np.ndarray
    vector_ordered: bool  # the chip orders V with itself
    races: bool
    undefined: bool


@njit(cache=True)
def sweep(st: State, tb: Tables, row: int, access: int, now: np.ndarray, ended: np.ndarray) -> tuple[int, int]:
    """Go through the rows of a batch from `row` on, whose first access row is `access`. Stops early where a table runs
    out of room; returns where. `ended` notes cores whose kernel is over."""
    rows = tb.instruction.shape[1]
    accesses = tb.access.shape[1]
    undefined = np.zeros(3, np.int64)
    while row < rows:
        if not has_room(st):
            break
        core = tb.instruction[0, row]
        pipe = tb.slot_of_pipe[tb.instruction[1, row]]
        opcode = tb.instruction[2, row]
        action = tb.action[opcode]
        agent = S if pipe == ALL else pipe
        if agent != S:
            clocks.issue(st, core, agent)
        st.count[core, agent] += 1
        start = access
        while access < accesses and tb.access[0, access] == tb.first + row:
            access += 1
        if access > start and tb.use[opcode] != NOTHING:
            now[CORE], now[PIPE], now[CLOCK] = core, agent, st.count[core, agent]
            look(st, tb, row, start, access, action, now, undefined)
        if action != NONE:
            act(st, tb, row, core, pipe, action, ended)
        row += 1
    return row, access


@njit(cache=True)
def has_room(st: State) -> bool:
    """Whether the next row cannot fill a table."""
    used = st.used
    return (
        used[MARKS] + ROOM <= st.mark_next.size
        and used[SEGMENTS] - used[SEGMENTS_FREE] + ROOM <= st.segment_next.size
        and used[DETAILS] + 1024 <= st.details.shape[0]
        and (used[FOREIGN_ROWS] == 1 or used[FOREIGN_ROWS] + 24 <= st.foreign_rows.shape[0])
        and used[MESSAGES] + 4 <= st.message_foreign.size
    )


# -- accesses --------------------------------------------------------------------------------------------------------


@njit(cache=True)
def look(
    st: State, tb: Tables, row: int, start: int, stop: int, action: int, now: np.ndarray, undefined: np.ndarray
) -> None:
    """All accesses of one instruction: what it reads before what it writes."""
    agent = now[PIPE]
    now[OVERLAPS] = agent != S and not (agent == V and tb.vector_ordered)
    if agent == M and action == MULTIPLY:
        tiles = -(-tb.instruction[5, row] // 16) * -(-tb.instruction[6, row] // 16)
        now[OVERLAPS] = tiles < FULL_TILE
    unit = UNIT if (action == MULTIPLY or action == FIXPIPE) and tb.instruction[8, row] != 0 else 0
    library = tb.instruction[4, row] == FRAMEWORK
    now[MARKING] = tb.races and not library
    st.used[SCRATCH] = 0
    use = tb.use[tb.instruction[2, row]]
    for access in range(start, stop):
        role = tb.access[1, access]
        if role != WRITE:
            now[ROLE] = role + unit
            touch(st, tb, row, access, now, undefined)
            if undefined[0] and tb.undefined:
                space = now[IN_SPACE]
                if space == GM or not library or agent != S:
                    consume(st, tb, row, access, start, use, now, undefined)
    for access in range(start, stop):
        if tb.access[1, access] == WRITE:
            now[ROLE] = WRITE + unit
            touch(st, tb, row, access, now, undefined)
    if st.used[SCRATCH]:
        pass_on(st, tb, row, start, stop, use, now)


@njit(cache=True)
def place_of(st: State, tb: Tables, row: int, access: int) -> tuple[int, int, int, int, int]:
    """(space, first page, lowest address of that page, bounds) of the memory that an access goes to; page -1: it has
    none here."""
    buffer = tb.access[2, access]
    space = tb.buffer_space[buffer]
    if space == GM:
        low = tb.region_low[buffer]
        return space, tb.buffer_page[buffer], low >> PAGE_BITS << PAGE_BITS, low, tb.region_high[buffer]
    core = tb.buffer_core[buffer]
    if core < 0:
        core = tb.instruction[0, row]
    return space, st.core_page[core, space], 0, 0, st.capacity[space]


@njit(cache=True)
def touch(st: State, tb: Tables, row: int, access: int, now: np.ndarray, undefined: np.ndarray) -> None:
    """One access, run by run and page by page."""
    undefined[:] = 0
    space, page, base, lowest, highest = place_of(st, tb, row, access)
    if page < 0:
        return
    now[IN_SPACE] = space
    now[MEMO_OUT] = now[OWN_MARK] = -1
    if now[MARKING]:
        detail = st.used[DETAILS]
        st.used[DETAILS] = detail + 1
        note(st.details[detail], tb, row, access)
        now[DETAIL_ROW] = detail
    address = tb.access[3, access]
    shape = tb.access[4, access]
    if shape >= 0:
        first, last = tb.run_first[shape], tb.run_first[shape + 1]
        starts, ends = tb.run_start, tb.run_end
    else:
        shape = -1 - shape - tb.explicit_lowest
        first, last = tb.explicit_first[shape], tb.explicit_first[shape + 1]
        starts, ends = tb.explicit_start, tb.explicit_end
    if last - first > ROOM // 4:
        st.used[CROWDED] += 1
        return
    at_page, hint = -1, -1
    for run in range(first, last):
        low, high = max(address + starts[run], lowest), min(address + ends[run], highest)
        while low < high:
            number = (low - base) >> PAGE_BITS
            stop = min(high, base + ((number + 1) << PAGE_BITS))
            if number != at_page:
                at_page, hint = number, -1
            hint = visit(st, page + number, low, stop, hint, now, undefined)
            low = stop


@njit(cache=True)
def note(detail: np.ndarray, tb: Tables, row: int, access: int) -> None:
    """What a report says of an access."""
    detail[SITE] = tb.instruction[3, row]
    detail[OPCODE] = tb.instruction[2, row]
    detail[ADDRESS] = tb.access[3, access]
    detail[FOOTPRINT] = tb.access[4, access]
    detail[BUFFER] = tb.access[2, access]
    detail[ROW] = tb.first + row


# -- bytes that were never written -----------------------------------------------------------------------------------


@njit(cache=True)
def consume(
    st: State, tb: Tables, row: int, access: int, start: int, use: int, now: np.ndarray, undefined: np.ndarray
) -> None:
    """An access read bytes that were never written: report them, or remember where they go."""
    if now[IN_SPACE] == GM or use == FINAL:
        report_use(st, tb, row, access, now, undefined)
        return
    value = undefined[2]
    if value < FROM_ORIGIN:
        value = FROM_ORIGIN + origin_of(st, tb, row, access, now)
    if use == BLOCKS:
        size = sequence_length(tb, access)
        if undefined[0] == size:
            remember(st, access - start, 0, size, value)
        return
    space, page, base, lowest, highest = place_of(st, tb, row, access)
    address = tb.access[3, access]
    shape = tb.access[4, access]
    if shape < 0:
        report_use(st, tb, row, access, now, undefined)
        return
    place = 0
    for run in range(tb.ordered_first[shape], tb.ordered_first[shape + 1]):
        low, high = address + tb.ordered_start[run], address + tb.ordered_end[run]
        before = low
        low, high = max(low, lowest), min(high, highest)
        while low < high:
            number = (low - base) >> PAGE_BITS
            stop = min(high, base + ((number + 1) << PAGE_BITS))
            segment = st.heads[page + number]
            while segment >= 0 and st.segment_start[segment] < stop:
                if st.segment_end[segment] > low and st.segment_undefined[segment] != DEFINED:
                    known = st.segment_undefined[segment]
                    remember(
                        st, access - start, place + max(st.segment_start[segment], low) - before,
                        place + min(st.segment_end[segment], stop) - before,
                        known if known >= FROM_ORIGIN else value,
                    )
                segment = st.segment_next[segment]
            low = stop
        place += tb.ordered_end[run] - tb.ordered_start[run]


@njit(cache=True)
def remember(st: State, access: int, low: int, high: int, value: int) -> None:
    """Bytes `low` to `high` of what an access reads, counted in the order of its elements, are undefined."""
    number = st.used[SCRATCH]
    if number >= st.scratch.shape[0]:
        st.used[CROWDED] += 1
        return
    st.used[SCRATCH] = number + 1
    st.scratch[number, 0], st.scratch[number, 1] = access, low
    st.scratch[number, 2], st.scratch[number, 3] = high, value


@njit(cache=True)
def sequence_length(tb: Tables, access: int) -> int:
    """Bytes of an access, those that it touches twice counted twice."""
    shape = tb.access[4, access]
    if shape < 0:
        return 0
    size = 0
    for run in range(tb.ordered_first[shape], tb.ordered_first[shape + 1]):
        size += tb.ordered_end[run] - tb.ordered_start[run]
    return size


@njit(cache=True)
def pass_on(st: State, tb: Tables, row: int, start: int, stop: int, use: int, now: np.ndarray) -> None:
    """Make the results of undefined operands undefined. The n-th group of reads belongs to the n-th write."""
    reads = writes = 0
    for access in range(start, stop):
        if tb.access[1, access] == WRITE:
            writes += 1
        else:
            reads += 1
    if writes == 0:
        return
    group = max(reads // writes, 1)
    read = write = -1
    for access in range(start, stop):
        if tb.access[1, access] != WRITE:
            continue
        write += 1
        target = sequence_length(tb, access)
        for item in range(st.used[SCRATCH]):
            source = start + st.scratch[item, 0]
            read = 0
            for other in range(start, source):
                read += tb.access[1, other] != WRITE
            if use == LANES and reads >= writes and read // group != write:
                continue
            size = sequence_length(tb, source)
            if size == 0 or target == 0:
                continue
            low = st.scratch[item, 1] * target // size
            high = -(-(st.scratch[item, 2] * target) // size)
            mark_undefined(st, tb, row, access, low, high, st.scratch[item, 3])


@njit(cache=True)
def mark_undefined(st: State, tb: Tables, row: int, access: int, first: int, last: int, value: int) -> None:
    """Bytes `first` to `last`, counted in the order of its elements, of what an access wrote are undefined."""
    space, page, base, lowest, highest = place_of(st, tb, row, access)
    shape = tb.access[4, access]
    if page < 0 or shape < 0 or space == GM:
        return
    address = tb.access[3, access]
    place = 0
    for run in range(tb.ordered_first[shape], tb.ordered_first[shape + 1]):
        begin, size = address + tb.ordered_start[run], tb.ordered_end[run] - tb.ordered_start[run]
        low = max(begin + max(first - place, 0), lowest)
        high = min(begin + min(last - place, size), highest)
        while low < high:
            number = (low - base) >> PAGE_BITS
            stop = min(high, base + ((number + 1) << PAGE_BITS))
            set_undefined(st, page + number, low, stop, value)
            low = stop
        place += size
        if place >= last:
            break


@njit(cache=True)
def origin_of(st: State, tb: Tables, row: int, access: int, now: np.ndarray) -> int:
    """The number under which the first read of never written bytes is remembered: one per line, buffer and core."""
    key = mixed(tb.instruction[3, row] + (1 << 41)) ^ mixed(tb.access[2, access] + (1 << 51)) ^ mixed(now[CORE])
    key = mixed(key) | 1
    slot = find(st.read_keys, key)
    if st.read_keys[slot] == key:
        return st.read_slots[slot]
    number = min(st.used[ORIGINS], st.origins.shape[0] - 1)
    st.used[ORIGINS] = number + 1
    st.read_keys[slot] = key
    st.read_slots[slot] = number
    origin = st.origins[number]
    origin[0], origin[1] = tb.access[1, access], now[CORE] * clocks.PIPES + now[PIPE]
    note(origin[2:], tb, row, access)
    return number


@njit(cache=True)
def report_use(st: State, tb: Tables, row: int, access: int, now: np.ndarray, undefined: np.ndarray) -> None:
    """Count a use of bytes never written; the first of a line, core and origin is kept in full."""
    origin = undefined[2] - FROM_ORIGIN if undefined[2] >= FROM_ORIGIN else -1
    key = mixed(tb.instruction[3, row] * 4096 + tb.instruction[2, row]) ^ mixed(origin + (1 << 42)) ^ mixed(
        now[CORE] * 64 + now[IN_SPACE] + (1 << 52)
    )
    key = mixed(key ^ mixed(tb.access[2, access] + (1 << 53))) | 1
    slot = find(st.read_keys, key)
    if st.read_keys[slot] == key:
        st.reads[st.read_slots[slot], USE_COUNT] += 1
        return
    number = st.used[READS]
    if number >= st.reads.shape[0]:
        st.used[CROWDED] += 1
        return
    st.used[READS] = number + 1
    st.read_keys[slot] = key
    st.read_slots[slot] = number
    use = st.reads[number]
    use[BYTES], use[FIRST_BYTE], use[USE_SPACE], use[USE_COUNT] = undefined[0], undefined[1], now[IN_SPACE], 1
    use[USER], use[USER + 1] = tb.access[1, access], now[CORE] * clocks.PIPES + now[PIPE]
    note(use[USER + 2 :], tb, row, access)
    use[ORIGIN] = origin


# -- order -----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def act(st: State, tb: Tables, row: int, core: int, pipe: int, action: int, ended: np.ndarray) -> None:
    """What the row orders."""
    a, b, c, d = tb.instruction[5, row], tb.instruction[6, row], tb.instruction[7, row], tb.instruction[8, row]
    if action == SET_FLAG or action == WAIT_FLAG:
        number = b
        if tb.instruction[4, row] == FRAMEWORK:
            number = d if d > 0 else LIBRARY_FLAG
        key = FLAG_KEY | (core << 32) | (a << 24) | number
        if action == SET_FLAG:
            clocks.set_flag(st, core, pipe, key)
        else:
            clocks.wait_flag(st, core, pipe, key)
    elif action == BARRIER:
        if pipe == ALL:
            clocks.drain(st, core)
        else:
            st.known[core, pipe, pipe] = st.count[core, pipe]
    elif action == CROSS_SET:
        clocks.release(st, core, S if pipe == ALL else pipe, TICKET_KEY | d)
    elif action == CROSS_WAIT:
        clocks.acquire(st, core, S if pipe == ALL else pipe, TICKET_KEY | d)
    elif action == SYNC_ALL:
        if a == 0:
            clocks.drain(st, core)
            if b == SOFT_SYNC:
                clocks.release(st, core, S, SOFT_KEY | c)
        elif b == SOFT_SYNC:
            clocks.acquire(st, core, S, SOFT_KEY | c)
    elif action == EXCHANGE:
        clocks.drain(st, core)
        clocks.acquire(st, core, S, SLOT_KEY | d)
        clocks.release(st, core, S, SLOT_KEY | d)
    elif action == PASS_ON:
        clocks.drain(st, core)
        clocks.release(st, core, S, CHAIN_KEY | d)
    elif action == TAKE_OVER:
        clocks.drain(st, core)
        clocks.acquire(st, core, S, CHAIN_KEY | d)
    elif action == POST:
        clocks.learn(st, b, S, clocks.snapshot(st, core, pipe))
    elif action == NOTIFY:
        clocks.release(st, core, pipe, SERVER_KEY | b)
    elif action == WAIT_NOTIFY:
        clocks.acquire(st, core, S, SERVER_KEY | core)
    elif action == DATA_BARRIER:
        if a != IN_SEQUENCE:
            clocks.drain(st, core)
    elif action == KERNEL_END:
        ended[core] = True
        for space in range(st.core_page.shape[1]):
            page = st.core_page[core, space]
            if page >= 0:
                clear_pages(st, page, page + ((st.capacity[space] - 1) >> PAGE_BITS) + 1)
