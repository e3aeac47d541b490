"""The loop over the rows of a batch, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order import clocks
from npuscope.sanitizer.order.access import (
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
)
from npuscope.sanitizer.order.clocks import PIPES
from npuscope.sanitizer.order.events import ALL, FULL_TILE, Action, M, S, Use, V
from npuscope.sanitizer.order.segments import set_undefined
from npuscope.sanitizer.order.shadow import visit
from npuscope.sanitizer.order.signals import NONE, act
from npuscope.sanitizer.order.state import (
    ADDRESS,
    AGENT,
    BUFFER,
    CLOCK,
    COUNT,
    CROWDED,
    DETAIL,
    FOOTPRINT,
    FOREIGN_ROWS,
    HISTORY,
    INDEXED,
    MARKS,
    MESSAGES,
    NEVER_WRITTEN,
    OPCODE,
    PAGE_BITS,
    ROLE,
    ROOM,
    ROW,
    SCRATCH,
    SEGMENTS,
    SEGMENTS_FREE,
    SITE,
    State,
)
from npuscope.sanitizer.order.tables import (
    ACTION,
    AS,
    AT,
    BUFFER_SPACE,
    EXPLICIT_LOWEST,
    FIRST_ROW,
    FRAMEWORK,
    GM,
    IN_BUFFER,
    OF,
    RACES,
    REWRITE,
    ROW_A,
    ROW_B,
    ROW_CORE,
    ROW_D,
    ROW_OPCODE,
    ROW_ORIGIN,
    ROW_PIPE,
    ROW_SITE,
    SHAPE,
    SPOIL,
    UNWRITTEN,
    USE,
    VECTOR_ORDERED,
    Tables,
    is_write,
    place_of,
)
from npuscope.sanitizer.order.undefined import FINAL, NOWHERE, consume, copies_whole, pass_on, report_use
from npuscope.trace.schema import UNIT_FLAG

MULTIPLY, FIXPIPE, POLLING = int(Action.MULTIPLY), int(Action.FIXPIPE), int(Action.POLL)
NOTHING = int(Use.NONE)


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
    flag = 0
    if action == MULTIPLY:
        flag = instruction[ROW_D, row] & UNIT_FLAG
    elif action == FIXPIPE:
        flag = instruction[ROW_D, row]
    now[OWN + ROLE] = UNIT if flag != 0 else 0
    if action == POLLING and instruction[ROW_A, row] != 0:
        now[OWN + ROLE] = POLL
    now[OWN + DETAIL + SITE] = instruction[ROW_SITE, row]
    now[OWN + DETAIL + OPCODE] = instruction[ROW_OPCODE, row]
    now[OWN + DETAIL + ROW] = settings[FIRST_ROW] + row
