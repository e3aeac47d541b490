"""The loop over the rows of a batch, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from npuscope.sanitizer.order import clocks
from npuscope.sanitizer.order.clocks import PIPES, message
from npuscope.sanitizer.order.events import ALL, FULL_TILE, Action, M, S, Use, V
from npuscope.sanitizer.order.shadow import (
    CORE,
    IN_PLACE,
    IN_SPACE,
    MARKING,
    MEMO_OUT,
    OVERLAPS,
    OWN,
    OWN_MARK,
    PIPE,
    POLL,
    UNCHANGED,
    UNIT,
    WRITE,
    clear_pages,
    entry,
    set_undefined,
    visit,
)
from npuscope.sanitizer.order.state import (
    ADDRESS,
    AGENT,
    BROUGHT_UNDEFINED,
    BUFFER,
    CLOCK,
    COUNT,
    CROWDED,
    DEFINED,
    DETAIL,
    DETAILS,
    END,
    FOOTPRINT,
    FOREIGN_ROWS,
    FROM_ORIGIN,
    HEAD,
    HIGH,
    HISTORY,
    INDEXED,
    KIND,
    LATER,
    LOW,
    MARKS,
    MESSAGES,
    NEVER_WRITTEN,
    NEXT,
    OPCODE,
    ORIGIN_ROW,
    PAGE_BITS,
    ROLE,
    ROOM,
    ROW,
    SCRATCH,
    SEGMENTS,
    SEGMENTS_FREE,
    SITE,
    SPACE,
    START,
    UNDEFINED,
    USED_UNDEFINED,
    State,
)
from npuscope.sanitizer.order.table import KEY, VALUE, find, mixed

NONE, SET_FLAG, WAIT_FLAG, BARRIER = int(Action.NONE), int(Action.SET_FLAG), int(Action.WAIT_FLAG), int(Action.BARRIER)
POST, SYNC_ALL = int(Action.POST), int(Action.SYNC_ALL)
DATA_BARRIER, KERNEL_END = int(Action.DATA_BARRIER), int(Action.KERNEL_END)
MULTIPLY, FIXPIPE, POLLING = int(Action.MULTIPLY), int(Action.FIXPIPE), int(Action.POLL)
FINAL, LANES, BLOCKS, NOTHING = int(Use.FINAL), int(Use.LANES), int(Use.BLOCKS), int(Use.NONE)

SPOIL, REWRITE = 3, 4
"""Roles of writes that leave their bytes undefined, and that change nothing."""
FRAMEWORK = 1
SOFT_SYNC = 2
IN_SEQUENCE = 3
GM = 0
FLAG_KEY = 1 << 60
NOWHERE: Any = np.int64(-1)
FIRST: Any = np.int64(0)
"""Typed as variables are: a literal would have functions compiled once more for it."""
LIBRARY_FLAG = 15
"""Stands for the id of a flag that the library sets and waits for in one go: queue flags begin at 16, a program's ids
end below."""

ROW_CORE, ROW_PIPE, ROW_OPCODE, ROW_SITE, ROW_ORIGIN, ROW_A, ROW_B, ROW_C, ROW_D = range(9)
"""Rows of the instruction table."""
OF, AS, IN_BUFFER, AT, SHAPE = range(5)
"""Rows of the access table: instruction, role, buffer, address, footprint."""
ACTION, USE, DRAINS, GIVES, TAKES, SIGNAL, OPERAND = range(7)
"""Rows of `Tables.opcodes`."""
BUFFER_SPACE, BUFFER_CORE, BUFFER_PAGE, REGION_LOW, REGION_HIGH = range(5)
"""Rows of `Tables.buffers`: space, core, and of a GM buffer the first page and the bounds of the stretch of memory that
it lies in."""
FIRST_ROW, EXPLICIT_LOWEST, VECTOR_ORDERED, RACES, UNWRITTEN, CORES = range(6)
"""Places in `Tables.settings`: row number of the batch's first instruction; which of the launch's explicit footprints
is the first in the table; whether the chip orders V with itself; what to look for; how many cores there are."""


class Tables(NamedTuple):
    """What a batch brings: its rows, and the tables that they refer to."""

    instruction: np.ndarray
    access: np.ndarray
    opcodes: np.ndarray
    pipes: np.ndarray
    shapes: np.ndarray  # (2, n + 1): where the runs of a footprint begin in `merged` and in `in_order`
    merged: np.ndarray
    in_order: np.ndarray
    explicit_first: np.ndarray
    explicit: np.ndarray
    buffers: np.ndarray
    settings: np.ndarray


@njit(cache=True)
def has_room(
    used: np.ndarray, foreign: np.ndarray, messages: np.ndarray, history: np.ndarray, index: np.ndarray,
    segments: np.ndarray, marks: np.ndarray,
) -> bool:
    """Whether the next row cannot fill a table."""
    return (
        used[MARKS] + ROOM <= marks.shape[0]
        and used[SEGMENTS] - used[SEGMENTS_FREE] + ROOM <= segments.shape[0]
        and (foreign.shape[0] == 1 or used[FOREIGN_ROWS] + 600 <= foreign.shape[0])
        and used[MESSAGES] + 4 <= messages.shape[0]
        and (history.shape[0] == 1 or used[HISTORY] + 600 <= history.shape[0])
        and used[INDEXED] * 2 + 2048 <= index.shape[0]
    )


@njit(cache=True)
def sweep(
    st: State, tb: Tables, row: int, access: int, now: np.ndarray, undefined: np.ndarray, ended: np.ndarray
) -> tuple[int, int]:
    """Go through the rows of a batch from `row` on, whose first access row is `access`. Stops early where a table runs
    out of room; returns where. `ended` notes cores whose kernel is over; `now` and `undefined` (bytes, first of them,
    value) are working room."""
    clock, foreign, messages, history, index = st.clock, st.foreign, st.messages, st.history, st.keys
    pages, core_page, segments, marks = st.pages, st.core_page, st.segments, st.marks
    found, scratch, used = st.found, st.scratch, st.used
    instruction, table, opcodes, settings = tb.instruction, tb.access, tb.opcodes, tb.settings
    merged, in_order, explicit, buffers = tb.merged, tb.in_order, tb.explicit, tb.buffers
    shapes, explicit_first = tb.shapes, tb.explicit_first
    rows = instruction.shape[1]
    accesses = table.shape[1]
    while row < rows and has_room(used, foreign, messages, history, index, segments, marks):
        core, opcode = instruction[ROW_CORE, row], instruction[ROW_OPCODE, row]
        pipe = tb.pipes[instruction[ROW_PIPE, row]]
        agent = S if pipe == ALL else pipe
        if agent != S:
            clocks.issue(clock, foreign, used, core, agent)
        clock[core, agent, COUNT] += 1
        start = access
        while access < accesses and table[OF, access] == settings[FIRST_ROW] + row:
            access += 1
        use = opcodes[USE, opcode]
        if access > start and use != NOTHING:
            prepare(clock, instruction, opcodes, settings, row, core, agent, now)
            library = instruction[ROW_ORIGIN, row] == FRAMEWORK
            used[SCRATCH] = 0
            for turn in range(2):  # what it reads before what it writes
                for at in range(start, access):
                    writes = is_write(table[AS, at])
                    if writes != turn:
                        continue
                    # -- one access, run by run and page by page
                    undefined[0] = 0
                    space, page, base, lowest, highest = place_of(core_page, buffers, settings, table, core, at)
                    if page < 0:
                        continue
                    now[IN_SPACE] = space
                    now[MEMO_OUT] = now[OWN_MARK] = -1
                    role = table[AS, at]
                    if writes:
                        role = WRITE + (UNCHANGED if role == REWRITE else 0)
                    else:
                        now[IN_PLACE] = overwrites(shapes, merged, buffers, table, at, start, access)
                    now[OWN + ROLE] = role + (now[OWN + ROLE] & (UNIT | POLL))
                    now[OWN + DETAIL + ADDRESS] = table[AT, at]
                    now[OWN + DETAIL + FOOTPRINT] = table[SHAPE, at]
                    now[OWN + DETAIL + BUFFER] = table[IN_BUFFER, at]
                    address, shape = table[AT, at], table[SHAPE, at]
                    if shape >= 0:
                        first, last, runs = shapes[0, shape], shapes[0, shape + 1], merged
                    else:
                        shape = -1 - shape - settings[EXPLICIT_LOWEST]
                        first, last, runs = explicit_first[shape], explicit_first[shape + 1], explicit
                    if last - first > ROOM // 4:
                        used[CROWDED] += 1
                        continue
                    at_page = hint = NOWHERE
                    for run in range(first, last):
                        low, high = max(address + runs[0, run], lowest), min(address + runs[1, run], highest)
                        while low < high:
                            number = (low - base) >> PAGE_BITS
                            stop = min(high, base + ((number + 1) << PAGE_BITS))
                            if number != at_page:
                                at_page, hint = number, NOWHERE
                            hint = visit(
                                pages, segments, marks, clock, foreign, history, found, index, used, now, undefined,
                                page + number, low, stop, hint,
                            )
                            if table[AS, at] == SPOIL:
                                set_undefined(pages, segments, used, page + number, low, stop, NEVER_WRITTEN)
                            low = stop
                    if undefined[0] and settings[UNWRITTEN] and (space == GM or not library or agent != S):
                        copied = space != GM or copies_whole(shapes, in_order, table, at, access)
                        if use == FINAL or table[SHAPE, at] < 0 or library or not copied:
                            report_use(found, index, used, now, undefined)
                        else:
                            consume(
                                pages, segments, found, index, used, scratch, shapes, in_order, table, now, undefined,
                                use, at, at - start, page, base, lowest, highest,
                            )
            if used[SCRATCH]:
                pass_on(
                    pages, segments, used, scratch, shapes, in_order, core_page, buffers, settings, table, core, start,
                    access, use,
                )
        action = opcodes[ACTION, opcode]
        if action != NONE:
            act(
                clock, foreign, messages, history, index, used, core_page, pages, segments, opcodes, instruction, row,
                core, pipe, ended,
            )
        row += 1
    return row, access


@njit(cache=True)
def is_write(role: int) -> bool:
    """Whether an access writes and does not read."""
    return role == WRITE or role == SPOIL or role == REWRITE


@njit(cache=True)
def overwrites(
    shapes: np.ndarray, merged: np.ndarray, buffers: np.ndarray, table: np.ndarray, access: int, start: int, stop: int
) -> bool:
    """Whether the instruction of an access, whose accesses are those from `start` to `stop`, writes some of the bytes
    that this one reads, as far as their extents say."""
    shape = table[SHAPE, access]
    space = buffers[BUFFER_SPACE, table[IN_BUFFER, access]]
    for other in range(start, stop):
        written = table[SHAPE, other]
        if is_write(table[AS, other]) and buffers[BUFFER_SPACE, table[IN_BUFFER, other]] == space:
            if shape < 0 or written < 0:
                return True
            first, last = shapes[0, shape], shapes[0, shape + 1] - 1
            begin, end = shapes[0, written], shapes[0, written + 1] - 1
            if first <= last and begin <= end:
                reach = table[AT, access] + merged[1, last], table[AT, other] + merged[1, end]
                if table[AT, access] + merged[0, first] < reach[1] and table[AT, other] + merged[0, begin] < reach[0]:
                    return True
    return False


# -- accesses --------------------------------------------------------------------------------------------------------


@njit(cache=True)
def prepare(
    clock: np.ndarray, instruction: np.ndarray, opcodes: np.ndarray, settings: np.ndarray, row: int, core: int,
    agent: int, now: np.ndarray,
) -> None:
    """What all accesses of an instruction have in common."""
    action = opcodes[ACTION, instruction[ROW_OPCODE, row]]
    now[CORE], now[PIPE] = core, agent
    now[OVERLAPS] = agent != S and not (agent == V and settings[VECTOR_ORDERED])
    if agent == M and action == MULTIPLY:
        now[OVERLAPS] = -(-instruction[ROW_A, row] // 16) * -(-instruction[ROW_B, row] // 16) < FULL_TILE
    now[MARKING] = settings[RACES] and instruction[ROW_ORIGIN, row] != FRAMEWORK
    now[OWN + CLOCK] = clock[core, agent, COUNT]
    now[OWN + AGENT] = core * PIPES + agent
    now[OWN + ROLE] = UNIT if (action == MULTIPLY or action == FIXPIPE) and instruction[ROW_D, row] != 0 else 0
    if action == POLLING and instruction[ROW_A, row] != 0:
        now[OWN + ROLE] = POLL
    now[OWN + DETAIL + SITE] = instruction[ROW_SITE, row]
    now[OWN + DETAIL + OPCODE] = instruction[ROW_OPCODE, row]
    now[OWN + DETAIL + ROW] = settings[FIRST_ROW] + row


@njit(cache=True)
def place_of(
    core_page: np.ndarray, buffers: np.ndarray, settings: np.ndarray, table: np.ndarray, core: int, access: int
) -> tuple[int, int, int, int, int]:
    """(space, first page, lowest address of that page, bounds) of the memory that an access goes to; page -1: it has
    none here."""
    buffer = table[IN_BUFFER, access]
    space = buffers[BUFFER_SPACE, buffer]
    if space == GM:
        low = buffers[REGION_LOW, buffer]
        return space, buffers[BUFFER_PAGE, buffer], low >> PAGE_BITS << PAGE_BITS, low, buffers[REGION_HIGH, buffer]
    owner = buffers[BUFFER_CORE, buffer]
    if owner < 0:
        owner = core
    return space, core_page[owner, space], 0, 0, core_page[settings[CORES], space]


# -- bytes that were never written -----------------------------------------------------------------------------------


@njit(cache=True)
def consume(
    pages: np.ndarray, segments: np.ndarray, found: np.ndarray, index: np.ndarray, used: np.ndarray,
    scratch: np.ndarray, shapes: np.ndarray, in_order: np.ndarray, table: np.ndarray, now: np.ndarray,
    undefined: np.ndarray, use: int, access: int, turn: int, page: int, base: int, lowest: int, highest: int,
) -> None:
    """Remember which of the bytes that an access read were never written, counted in the order of its elements."""
    value = undefined[2]
    if value < FROM_ORIGIN:
        value = FROM_ORIGIN + origin_of(found, index, used, now)
    shape = table[SHAPE, access]
    if use == BLOCKS:
        size = sequence_length(shapes, in_order, shape)
        if undefined[0] == size:
            remember(scratch, used, turn, FIRST, size, value)
        return
    address = table[AT, access]
    passed = 0
    for run in range(shapes[1, shape], shapes[1, shape + 1]):
        begin = address + in_order[0, run]
        low, high = max(begin, lowest), min(address + in_order[1, run], highest)
        while low < high:
            number = (low - base) >> PAGE_BITS
            stop = min(high, base + ((number + 1) << PAGE_BITS))
            segment = pages[page + number, HEAD]
            while segment >= 0 and segments[segment, START] < stop:
                known = segments[segment, UNDEFINED]
                if segments[segment, END] > low and known != DEFINED:
                    remember(
                        scratch, used, turn, passed + max(segments[segment, START], low) - begin,
                        passed + min(segments[segment, END], stop) - begin, known if known >= FROM_ORIGIN else value,
                    )
                segment = segments[segment, NEXT]
            low = stop
        passed += in_order[1, run] - in_order[0, run]


@njit(cache=True)
def copies_whole(shapes: np.ndarray, in_order: np.ndarray, table: np.ndarray, access: int, stop: int) -> bool:
    """Whether what comes from GM is written as it is: the next write has as many bytes."""
    for other in range(access + 1, stop):
        if is_write(table[AS, other]):
            size = sequence_length(shapes, in_order, table[SHAPE, access])
            return size == sequence_length(shapes, in_order, table[SHAPE, other])
    return False


@njit(cache=True)
def remember(scratch: np.ndarray, used: np.ndarray, turn: int, low: int, high: int, value: int) -> None:
    """One stretch of undefined bytes of access number `turn` of an instruction."""
    number = used[SCRATCH]
    if number >= scratch.shape[0]:
        used[CROWDED] += 1
        return
    used[SCRATCH] = number + 1
    scratch[number, 0], scratch[number, 1], scratch[number, 2], scratch[number, 3] = turn, low, high, value


@njit(cache=True)
def sequence_length(shapes: np.ndarray, in_order: np.ndarray, shape: int) -> int:
    """Bytes of a footprint, those that it touches twice counted twice; 0 for an explicit one."""
    size = 0
    if shape >= 0:
        for run in range(shapes[1, shape], shapes[1, shape + 1]):
            size += in_order[1, run] - in_order[0, run]
    return size


@njit(cache=True)
def pass_on(
    pages: np.ndarray, segments: np.ndarray, used: np.ndarray, scratch: np.ndarray, shapes: np.ndarray,
    in_order: np.ndarray, core_page: np.ndarray, buffers: np.ndarray, settings: np.ndarray, table: np.ndarray,
    core: int, start: int, stop: int, use: int,
) -> None:
    """Make the results of undefined operands undefined. Lane by lane, the n-th group of reads goes to the n-th write;
    else all go to all."""
    reads = writes = 0
    for access in range(start, stop):
        if not is_write(table[AS, access]):
            reads += 1
        elif table[AS, access] != SPOIL:
            writes += 1
    grouped = use == LANES and reads >= writes
    write = -1
    for access in range(start, stop):
        if not is_write(table[AS, access]) or table[AS, access] == SPOIL:
            continue
        write += 1
        target = sequence_length(shapes, in_order, table[SHAPE, access])
        for item in range(used[SCRATCH]):
            source = start + scratch[item, 0]
            read = 0
            for other in range(start, source):
                read += not is_write(table[AS, other])
            size = sequence_length(shapes, in_order, table[SHAPE, source])
            if size == 0 or target == 0 or (grouped and read // (reads // writes) != write):
                continue
            low = scratch[item, 1] * target // size
            high = -(-(scratch[item, 2] * target) // size)
            space, page, base, lowest, highest = place_of(core_page, buffers, settings, table, core, access)
            if page >= 0 and space != GM:
                spoil(
                    pages, segments, used, shapes, in_order, table[SHAPE, access], table[AT, access], page, base,
                    lowest, highest, low, high, scratch[item, 3],
                )


@njit(cache=True)
def spoil(
    pages: np.ndarray, segments: np.ndarray, used: np.ndarray, shapes: np.ndarray, in_order: np.ndarray, shape: int,
    address: int, page: int, base: int, lowest: int, highest: int, first: int, last: int, value: int,
) -> None:
    """Bytes `first` to `last` of a written footprint, counted in the order of its elements, are undefined."""
    passed = 0
    for run in range(shapes[1, shape], shapes[1, shape + 1]):
        begin, size = address + in_order[0, run], in_order[1, run] - in_order[0, run]
        low = max(begin + max(first - passed, 0), lowest)
        high = min(begin + min(last - passed, size), highest)
        while low < high:
            number = (low - base) >> PAGE_BITS
            stop = min(high, base + ((number + 1) << PAGE_BITS))
            set_undefined(pages, segments, used, page + number, low, stop, value)
            low = stop
        passed += size
        if passed >= last:
            break


@njit(cache=True)
def origin_of(found: np.ndarray, index: np.ndarray, used: np.ndarray, now: np.ndarray) -> int:
    """The row of `found` that keeps the first read of bytes never written: one per line, buffer and core."""
    detail = now[OWN + DETAIL :]
    key = mixed(detail[SITE] + (1 << 41)) ^ mixed(detail[BUFFER] + (1 << 51)) ^ mixed(now[CORE] + (1 << 54))
    key = mixed(key) | 1
    number = entry(found, index, used, key)
    if number < 0:
        slot = find(index, key)
        return index[slot, VALUE] if index[slot, KEY] == key else 0
    keep(found[number], now, BROUGHT_UNDEFINED)
    return number


@njit(cache=True)
def keep(row: np.ndarray, now: np.ndarray, kind: int) -> None:
    """The access `now` as the later side of a row of `found`."""
    row[KIND], row[SPACE] = kind, now[IN_SPACE]
    row[LATER], row[LATER + 1] = now[OWN + ROLE] & 3, now[OWN + AGENT]
    for column in range(DETAILS):
        row[LATER + 2 + column] = now[OWN + DETAIL + column]


@njit(cache=True)
def report_use(
    found: np.ndarray, index: np.ndarray, used: np.ndarray, now: np.ndarray, undefined: np.ndarray
) -> None:
    """Count a use of bytes never written; the first of a line, core, buffer and origin is kept in full."""
    origin = undefined[2] - FROM_ORIGIN if undefined[2] >= FROM_ORIGIN else NOWHERE
    detail = now[OWN + DETAIL :]
    key = mixed(detail[SITE] * 4096 + detail[OPCODE]) ^ mixed(origin + (1 << 42))
    key = mixed(key ^ mixed(now[CORE] * 64 + now[IN_SPACE] + (1 << 52)))
    key = mixed(key ^ mixed(detail[BUFFER] + (1 << 53))) | 1
    number = entry(found, index, used, key)
    if number < 0:
        return
    row = found[number]
    keep(row, now, USED_UNDEFINED)
    row[LOW], row[HIGH], row[ORIGIN_ROW] = undefined[1], undefined[1] + undefined[0], origin


# -- order -----------------------------------------------------------------------------------------------------------


@njit(cache=True)
def act(
    clock: np.ndarray, foreign: np.ndarray, messages: np.ndarray, history: np.ndarray, index: np.ndarray,
    used: np.ndarray, core_page: np.ndarray, pages: np.ndarray, segments: np.ndarray, opcodes: np.ndarray,
    instruction: np.ndarray, row: int, core: int, pipe: int, ended: np.ndarray,
) -> None:
    """What the row orders."""
    opcode = instruction[ROW_OPCODE, row]
    action = opcodes[ACTION, opcode]
    a = instruction[ROW_A, row]
    agent = S if pipe == ALL else pipe
    if action == SET_FLAG or action == WAIT_FLAG:
        number = instruction[ROW_B, row]
        if instruction[ROW_ORIGIN, row] == FRAMEWORK:
            number = instruction[ROW_D, row]
            if number == 0:
                number = LIBRARY_FLAG
        told = message(messages, index, used, FLAG_KEY | (core << 32) | (a << 24) | number)
        if action == SET_FLAG:
            clocks.set_flag(clock, messages, told, core, agent)
        else:
            clocks.wait_flag(clock, foreign, history, used, messages, told, core, agent)
        return
    if action == BARRIER and pipe != ALL:
        clock[core, pipe, pipe] = clock[core, pipe, COUNT]
        return
    if action == KERNEL_END:
        ended[core] = True
        for space in range(core_page.shape[1]):
            page = core_page[core, space]
            if page >= 0:
                size = core_page[core_page.shape[0] - 1, space]
                clear_pages(pages, segments, used, page, page + ((size - 1) >> PAGE_BITS) + 1)
        return
    arrives = action == SYNC_ALL and a == 0
    if opcodes[DRAINS, opcode] or action == BARRIER or arrives or (action == DATA_BARRIER and a != IN_SEQUENCE):
        clocks.drain(clock, foreign, history, used, core)
    if foreign.shape[0] == 1:
        return  # no core learns of another one
    if action == POST:
        told = clocks.snapshot(clock, foreign, used, core, agent)
        clocks.learn(clock, foreign, history, used, instruction[ROW_B, row], S, told)
        return
    gives, takes = opcodes[GIVES, opcode] != 0, opcodes[TAKES, opcode] != 0
    if action == SYNC_ALL:
        soft = instruction[ROW_B, row] == SOFT_SYNC
        gives, takes = soft and arrives, soft and not arrives
    if gives or takes:
        key = opcodes[SIGNAL, opcode] | instruction[opcodes[OPERAND, opcode], row]
        told = message(messages, index, used, key)
        if takes:
            clocks.learn(clock, foreign, history, used, core, agent, messages[told, PIPES])
        if gives:
            clocks.release(clock, foreign, used, messages, told, core, agent)
