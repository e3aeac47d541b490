"""Bytes that were never written, on their way through instructions, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from npuscope.sanitizer.order.access import CORE, IN_SPACE, OWN
from npuscope.sanitizer.order.events import Use
from npuscope.sanitizer.order.races import entry
from npuscope.sanitizer.order.segments import set_undefined
from npuscope.sanitizer.order.state import (
    AGENT,
    BROUGHT_UNDEFINED,
    BUFFER,
    CROWDED,
    DEFINED,
    DETAIL,
    DETAILS,
    END,
    FROM_ORIGIN,
    HEAD,
    HIGH,
    KIND,
    LATER,
    LOW,
    NEXT,
    OPCODE,
    ORIGIN_ROW,
    PAGE_BITS,
    ROLE,
    SCRATCH,
    SITE,
    SPACE,
    START,
    UNDEFINED,
    USED_UNDEFINED,
)
from npuscope.sanitizer.order.table import KEY, VALUE, find, mixed
from npuscope.sanitizer.order.tables import AS, AT, GM, SHAPE, SPOIL, is_write, place_of, sequence_length

FINAL, LANES, BLOCKS = int(Use.FINAL), int(Use.LANES), int(Use.BLOCKS)
FIRST: Any = np.int64(0)
NOWHERE: Any = np.int64(-1)
"""Typed as variables are: a literal would have functions compiled once more for it."""


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
