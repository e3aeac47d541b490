"""Memory as lists of segments, compiled.

Every page has a list of segments, ascending and apart; bytes that no segment holds were not touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from npuscope.sanitizer.order.state import (
    END,
    FINGER,
    HEAD,
    MARK,
    NEXT,
    SEGMENT_FREE,
    SEGMENTS,
    SEGMENTS_FREE,
    START,
    UNDEFINED,
    UNTOUCHED,
)

NOBODY: Any = np.int64(-1)
"""No segment, and no mark; typed as variables are, a literal would have functions compiled once more for it."""


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
