"""Pairs that nothing orders, as rows of what was found, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.access import CORE, IN_SPACE, OWN, PIPE, READ, UNCHANGED
from npuscope.sanitizer.order.clocks import PIPES
from npuscope.sanitizer.order.events import MTE2, MTE3, S, V
from npuscope.sanitizer.order.state import (
    AGENT,
    AUTO,
    CLOCK,
    COMPILER,
    CROWDED,
    DETAIL,
    DETAILS,
    EARLIER,
    END,
    FOUND,
    HIGH,
    INDEXED,
    KIND,
    LATER,
    LOW,
    RAW,
    ROLE,
    SAME,
    SPACE,
    START,
    TIMES,
    VERSION,
    WAR,
    WAW,
)
from npuscope.sanitizer.order.table import KEY, VALUE, find, mixed


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
