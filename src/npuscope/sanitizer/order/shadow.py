"""One access in one page: what it races with, the mark that it leaves, and what it reads that was never written."""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.access import MARKING, MEMO_IN, MEMO_OUT, OWN, READ, WRITE
from npuscope.sanitizer.order.marks import overwritten, touched
from npuscope.sanitizer.order.segments import cut, free_segment
from npuscope.sanitizer.order.state import DEFINED, END, FINGER, HEAD, MARK, NEXT, ROLE, START, UNDEFINED


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
