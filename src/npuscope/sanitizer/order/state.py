"""The engine's state as named arrays, and where its counters are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

(SEGMENT_FREE, SEGMENTS_FREE, SEGMENTS, MARKS, FOREIGN_ROWS, MESSAGES, HISTORY, FOUND, INDEXED, SCRATCH,
 CROWDED) = range(11)
"""Places in `State.used`: head of the list of free segments (-1: none), how many are in it, and how many rows of each
table are in use; `CROWDED` counts what was not kept because a table was full."""

COUNT, SEEN, FOREIGN, VERSION, AUTO, LEARNT = range(7, 13)
"""Columns of `State.clock` after an agent's seven entries of what it knows of its own core: its rows so far, which are
its clock; the version of the scalar pipe that it took over last; the row of `State.foreign` with what it knows of other
cores. Of the scalar pipe only: a number that grows when it learns something; whether the device compiler adds flags on
this core; the row of `State.history` with what it learnt last, 0 for nothing."""

BEFORE, SINCE, KNEW, KNEW_FOREIGN = 0, 1, 2, 9
"""Columns of `State.history`: the row before of the same core, the clock of the scalar pipe when it learnt something,
what it knew of its core from then on (7 columns), and the row of `State.foreign`."""


HEAD, UNTOUCHED, FINGER = range(3)
"""Columns of `State.pages`: first segment (-1 none), what is known of bytes that no segment holds, and the segment that
was touched last, where the next search begins if it can (-1 none)."""

START, END, NEXT, MARK, UNDEFINED = range(5)
"""Columns of `State.segments`; MARK is the newest mark, -1 none."""
DEFINED, NEVER_WRITTEN, FROM_ORIGIN = range(3)
"""What is known of content: from FROM_ORIGIN on, that it comes from bytes never written, by way of the instruction in
row (value - FROM_ORIGIN) of `State.found`."""

CLOCK, AGENT, ROLE, OLDER, LENGTH, WRITES, DETAIL = range(7)
"""Columns of `State.marks`: clock and number of the agent, role (with what `access` adds to it), the next older mark
(-1 none), how many there are from this one on, the first of them that is no read (-1 none), and from DETAIL on what a
report says of the access."""
SITE, OPCODE, ADDRESS, FOOTPRINT, BUFFER, ROW = range(6)
DETAILS = 6
"""A detail's columns."""

KIND, COMPILER, SPACE, LOW, HIGH, TIMES, EARLIER, LATER = 0, 1, 2, 3, 4, 5, 6, 14
"""Columns of `State.found`. From EARLIER and LATER on: role, agent, then a detail."""
ORIGIN_ROW = EARLIER
"""Of a use of bytes never written (its access is LATER, LOW their first address, HIGH - LOW how many): the row of the
instruction that brought them there, -1 when they were read where they lay."""
FOUND_ROW = 22
RAW, WAR, WAW, SAME, USED_UNDEFINED, BROUGHT_UNDEFINED = range(6)
"""Kinds of `State.found`. SAME is a WAW whose later write changes nothing. The last is no finding: it keeps an
instruction (LATER) that others go back to."""

PAGE_BITS = 16
"""Memory is cut into pages of 64 KiB, each with a list of segments of its own."""

ROOM = 1 << 17
"""Segments and marks that are free before every row: more than one row can use up."""


class State(NamedTuple):
    """All tables of a launch, int64 unless said otherwise."""

    clock: np.ndarray  # (cores, 7, 13)
    foreign: np.ndarray  # (rows, agents) int32; row 0 knows nothing
    messages: np.ndarray  # (messages, 8): what the sender knew of its core, row of `foreign`
    history: np.ndarray  # (rows, 10), of launches with several cores; row 0 is none
    keys: np.ndarray  # hash table: (slots, 2) key and row, of messages and of what was found
    pages: np.ndarray  # (pages, 3)
    core_page: np.ndarray  # (cores + 1, spaces): first page of a core's memory, -1 none; the last row: capacities
    segments: np.ndarray  # (segments, 5)
    marks: np.ndarray  # (marks, DETAIL + DETAILS)
    found: np.ndarray  # (findings, FOUND_ROW)
    scratch: np.ndarray  # (n, 4): access, start and end in the order of its elements, UNDEFINED value
    used: np.ndarray


_spare: list[State] = []
"""The tables of a launch that is over: large memory that is ready is quicker than fresh memory."""


def new_state(cores: int, spaces: int) -> State:
    """Empty tables for a launch of `cores` cores. They are large; only what is used takes memory."""
    used = np.zeros(11, np.int64)
    used[SEGMENT_FREE] = -1
    used[FOREIGN_ROWS] = used[HISTORY] = 1
    core_page = np.full((cores + 1, spaces), -1, np.int64)
    core_page[cores] = 0
    own: dict[str, Any] = {
        "clock": np.zeros((cores, 7, 13), np.int64),
        "foreign": np.zeros((1, cores * 7), np.int32),
        "history": np.zeros((1 << 10 if cores > 1 else 1, 10), np.int64),
        "pages": np.empty((0, 3), np.int64),
        "core_page": core_page,
        "used": used,
    }
    if _spare:
        state = _spare.pop()._replace(**own)
        state.keys[...] = 0
        return state
    return State(
        messages=np.zeros((512, 8), np.int64),
        keys=np.zeros((1 << 14, 2), np.int64),
        segments=np.zeros((4 * ROOM, 5), np.int64),
        marks=np.zeros((4 * ROOM, DETAIL + DETAILS), np.int64),
        found=np.zeros((1 << 14, FOUND_ROW), np.int64),
        scratch=np.zeros((1 << 16, 4), np.int64),
        **own,
    )


def give_back(state: State) -> None:
    """The launch is over and has been reported; its tables are for the next one, unless they have grown very large."""
    if not _spare and state.segments.shape[0] + state.marks.shape[0] <= 16 * ROOM:
        _spare.append(state)


def doubled(table: np.ndarray) -> np.ndarray:
    """The table with room for twice as many rows."""
    return np.concatenate([table, np.zeros_like(table)])
