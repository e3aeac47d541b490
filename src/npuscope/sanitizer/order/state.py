"""The engine's state as named arrays, and where its counters are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npuscope.sanitizer.order.table import new_table

(SEGMENT_FREE, SEGMENTS_FREE, SEGMENTS, MARKS, DETAILS, FOREIGN_ROWS, MESSAGES, PAIRS, READS, ORIGINS, SCRATCH,
 CROWDED) = range(12)
"""Places in `State.used`: head of the list of free segments (-1: none), how many are in it, and how many rows of each
table are in use; `CROWDED` counts what was not kept because a table was full."""
COUNTERS = 12

SITE, OPCODE, ADDRESS, FOOTPRINT, BUFFER, ROW = range(6)
"""Columns of `State.details`: what a report says of an access."""
DETAIL = 6

KIND, AUTO, SPACE, LOW, HIGH, COUNT, EARLIER, LATER = 0, 1, 2, 3, 4, 5, 6, 14
"""Columns of `State.pairs`; from EARLIER and LATER on: role, agent, then a detail."""
PAIR = 22

BYTES, FIRST_BYTE, USE_SPACE, USE_COUNT, USER, ORIGIN = 0, 1, 2, 3, 4, 12
"""Columns of `State.reads` (uses of bytes that were never written); from USER on role, agent, detail; ORIGIN is the
row of `State.origins` of the instruction that brought them there, -1 when they were read where they lay."""
READ_ROW = 13

RAW, WAR, WAW = 0, 1, 2
PAGE_BITS = 12
"""Memory is cut into pages of 4096 bytes, each with a list of segments of its own."""

DEFINED, NEVER_WRITTEN, FROM_ORIGIN = 0, 1, 2
"""`segment_undefined`: what is known of the content; from FROM_ORIGIN on, an origin's number plus FROM_ORIGIN."""


class State(NamedTuple):
    """All tables. Clocks first, then memory, then what was found."""

    count: np.ndarray  # (cores, 7): rows of an agent so far, its clock
    known: np.ndarray  # (cores, 7, 7): up to which row of each pipe of its core an agent knows all to be complete
    version: np.ndarray  # (cores,): grows when the scalar pipe learns something
    seen: np.ndarray  # (cores, 7): the version that an agent took over last
    foreign: np.ndarray  # (cores, 7): the row of `foreign_rows` with what an agent knows of other cores
    foreign_rows: np.ndarray  # (rows, agents)
    message_keys: np.ndarray
    message_slots: np.ndarray
    message_known: np.ndarray  # (messages, 7)
    message_foreign: np.ndarray  # (messages,)
    auto: np.ndarray  # (cores,): the device compiler would add flags between S, V and the copies
    heads: np.ndarray  # (pages,): first segment, -1 none
    untouched: np.ndarray  # (pages,): segment_undefined of bytes that no segment holds
    core_page: np.ndarray  # (cores, spaces): first page of a core's memory, -1 none
    capacity: np.ndarray  # (spaces,)
    segment_start: np.ndarray
    segment_end: np.ndarray
    segment_next: np.ndarray
    segment_mark: np.ndarray  # newest mark, -1 none
    segment_undefined: np.ndarray
    mark_detail: np.ndarray
    mark_clock: np.ndarray
    mark_agent: np.ndarray
    mark_role: np.ndarray  # role, plus UNIT where the instruction works under a unit flag
    mark_next: np.ndarray
    details: np.ndarray  # (details, DETAIL)
    pairs: np.ndarray  # (pairs, PAIR)
    pair_keys: np.ndarray
    pair_slots: np.ndarray
    reads: np.ndarray  # (uses, READ_ROW)
    read_keys: np.ndarray
    read_slots: np.ndarray
    origins: np.ndarray  # (origins, 2 + DETAIL): role, agent, detail
    scratch: np.ndarray  # (n, 4): access, sequence start, end, undefined value
    used: np.ndarray  # (COUNTERS,)


ROOM = 1 << 18
"""Segments, marks and the like that are free before every row: more than one row can use up."""


def new_state(cores: int, spaces: int) -> State:
    """Empty tables for a launch of `cores` cores. They are large; only what is used takes memory."""
    message_keys, message_slots = new_table(1 << 10)
    pair_keys, pair_slots = new_table(1 << 18)
    read_keys, read_slots = new_table(1 << 18)
    used = np.zeros(COUNTERS, np.int64)
    used[SEGMENT_FREE] = -1
    used[FOREIGN_ROWS] = 1  # row 0: nothing known
    rows = 4 * ROOM
    return State(
        count=np.zeros((cores, 7), np.int64),
        known=np.zeros((cores, 7, 7), np.int64),
        version=np.zeros(cores, np.int64),
        seen=np.zeros((cores, 7), np.int64),
        foreign=np.zeros((cores, 7), np.int64),
        foreign_rows=np.zeros((1, cores * 7), np.int32),
        message_keys=message_keys,
        message_slots=message_slots,
        message_known=np.zeros((512, 7), np.int64),
        message_foreign=np.zeros(512, np.int64),
        auto=np.zeros(cores, np.bool_),
        heads=np.empty(0, np.int32),
        untouched=np.empty(0, np.int32),
        core_page=np.full((cores, spaces), -1, np.int64),
        capacity=np.zeros(spaces, np.int64),
        segment_start=np.zeros(rows, np.int64),
        segment_end=np.zeros(rows, np.int64),
        segment_next=np.zeros(rows, np.int32),
        segment_mark=np.zeros(rows, np.int32),
        segment_undefined=np.zeros(rows, np.int32),
        mark_detail=np.zeros(rows, np.int32),
        mark_clock=np.zeros(rows, np.int64),
        mark_agent=np.zeros(rows, np.int32),
        mark_role=np.zeros(rows, np.int8),
        mark_next=np.zeros(rows, np.int32),
        details=np.zeros((rows, DETAIL), np.int64),
        pairs=np.zeros((1 << 16, PAIR), np.int64),
        pair_keys=pair_keys,
        pair_slots=pair_slots,
        reads=np.zeros((1 << 16, READ_ROW), np.int64),
        read_keys=read_keys,
        read_slots=read_slots,
        origins=np.zeros((1 << 16, 2 + DETAIL), np.int64),
        scratch=np.zeros((1 << 16, 4), np.int64),
        used=used,
    )


def doubled(table: np.ndarray) -> np.ndarray:
    """The table with room for twice as many rows."""
    return np.concatenate([table, np.zeros_like(table)])
