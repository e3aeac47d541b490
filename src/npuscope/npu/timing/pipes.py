"""The pipes of a core, compiled: they take what was issued to them in order (hardware.md 3.1, 3.2)."""

from __future__ import annotations

from npuscope.npu.timing.book import (
    A_NEXT,
    HISTORY,
    NOBODY,
    P_DONE,
    P_FREE,
    Book,
    Found,
    Given,
    last_fired,
    unfired,
    wait_for,
    wake,
)  # fmt: skip
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import SLOTS
from npuscope.npu.timing.layout import (
    BUSY,
    END,
    FIRE,
    ISSUE,
    K_BARRIER,
    K_COPY,
    K_SET,
    K_WAIT,
    KIND,
    LATENCY,
    NEXT,
    RANGE,
    RANGES,
    START,
    STRICT,
    UNKNOWN_TIME,
)  # fmt: skip

NO_COPY = -1.0


@inner
def run_pipe(given: Given, found: Found, book: Book, agent: int) -> float:
    """Let a pipe go on as far as it can. Returns when its next copy through GM could start, NO_COPY where none is
    next."""
    while book.agents[A_NEXT, agent] >= 0:
        op = book.agents[A_NEXT, agent]
        if found.times[op, ISSUE] == UNKNOWN_TIME:
            return NO_COPY
        blocker = unfired(given, found, op, 0)
        if blocker != NOBODY:
            wait_for(book, blocker, agent)
            return NO_COPY
        kind = given.ops[op, KIND]
        start = max(found.times[op, ISSUE] + 1.0, book.state[P_FREE, agent])
        latest, done = last_fired(given, found, op, 0), book.state[P_DONE, agent]
        end = fire = free = start + 1.0
        if kind == K_WAIT:
            end = fire = free = max(end, latest)
        elif kind == K_SET:
            end = fire = max(end, done)
        elif kind == K_BARRIER:
            end = fire = free = max(end, done)
        else:
            if kind == K_COPY:
                latest = max(start, latest)
                found.times[op, START] = start if given.ops[op, STRICT] else latest
                return latest
            start = max(start, latest)
            if given.ops[op, RANGE] >= 0:
                start = after_dependencies(given, found, book, agent // SLOTS, op, start)
            free = start + given.costs[op, BUSY]
            end = fire = max(free + given.costs[op, LATENCY], done)
        found.times[op, START] = start
        pass_on(given, found, book, agent, op, free, end, fire)
    return NO_COPY


@inner
def after_dependencies(given: Given, found: Found, book: Book, core: int, op: int, start: float) -> float:
    """When a vector instruction can start, as the compiler's barriers let it."""
    mine = given.ops[op, RANGE]
    for number in range(HISTORY):
        before = book.recent[core, number]
        if before >= 0 and found.times[before, END] > start and depends(given, mine, given.ops[before, RANGE]):
            start = found.times[before, END]
    for number in range(HISTORY - 1):
        book.recent[core, number] = book.recent[core, number + 1]
    book.recent[core, HISTORY - 1] = op
    return start


@inner
def depends(given: Given, one: int, other: int) -> bool:
    """Whether a vector instruction must wait for an earlier one: one of them writes what the other touches."""
    ranges = given.ranges
    for first in range(RANGES):
        for second in range(RANGES):
            if (first == 0 or second == 0) and (
                ranges[2 * first, one] < ranges[2 * second + 1, other]
                and ranges[2 * second, other] < ranges[2 * first + 1, one]
            ):
                return True
    return False


@inner
def pass_on(
    given: Given, found: Found, book: Book, agent: int, op: int, free: float, end: float, fire: float
) -> None:
    """The end of an op on a pipe is known: the pipe goes to its next one at `free`."""
    found.times[op, END], found.times[op, FIRE] = end, fire
    book.state[P_FREE, agent] = free
    book.state[P_DONE, agent] = max(book.state[P_DONE, agent], end)
    book.agents[A_NEXT, agent] = given.ops[op, NEXT]
    wake(book, op)
