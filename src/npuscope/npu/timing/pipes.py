"""The pipes of a core, compiled: they take what was issued to them in order (hardware.md 3.1, 3.2)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import HISTORY, NOBODY, Book, last_fired, unfired, wait_for, wake
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import SLOTS
from npuscope.npu.timing.layout import K_BARRIER, K_COPY, K_SET, K_WAIT, RANGES, UNKNOWN_TIME, Record

NO_COPY = -1.0


@inner
def run_pipe(book: Book, counts: Record, number: int) -> float:
    """Let a pipe go on as far as it can. Returns when its next copy through GM could start, NO_COPY where none is
    next."""
    ops, links, agent = book.ops, book.links, book.agents[number]
    while agent.next >= 0:
        op = ops[agent.next]
        if op.issue == UNKNOWN_TIME:
            return NO_COPY
        blocker = unfired(ops, links, op.dep_issued, op.dep1)
        if blocker != NOBODY:
            wait_for(ops, agent, blocker, number)
            return NO_COPY
        kind = op.kind
        start = max(op.issue + 1.0, agent.free)
        latest = last_fired(ops, links, op.dep_issued, op.dep1)
        end = fire = free = start + 1.0
        if kind == K_WAIT:
            end = fire = free = max(end, latest)
        elif kind == K_SET:
            end = fire = max(end, agent.done)
        elif kind == K_BARRIER:
            end = fire = free = max(end, agent.done)
        else:
            start = max(start, latest)
            if op.range >= 0:
                start = after_dependencies(ops, book.ranges, book.recent[number // SLOTS], agent.next, start)
            if kind == K_COPY:
                return start
            free = start + op.busy
            end = fire = free + op.latency
        op.start = start
        pass_on(agent, op, free, end, fire)
        wake(book.agents, counts, op)
    return NO_COPY


@inner
def after_dependencies(ops: np.ndarray, ranges: np.ndarray, recent: np.ndarray, number: int, start: float) -> float:
    """When a vector instruction can start, as the compiler's barriers let it; it becomes the last of the recent ones."""
    mine = ranges[ops[number].range]
    for place in range(HISTORY):
        if recent[place] >= 0:
            before = ops[recent[place]]
            if before.end > start and depends(mine, ranges[before.range]):
                start = before.end
        if place > 0:
            recent[place - 1] = recent[place]
    recent[HISTORY - 1] = number
    return start


@inner
def depends(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a vector instruction must wait for an earlier one: one of them writes what the other touches."""
    for first in range(RANGES):
        for second in range(RANGES):
            if (first == 0 or second == 0) and (
                one[2 * first] < other[2 * second + 1] and other[2 * second] < one[2 * first + 1]
            ):
                return True
    return False


@inner
def pass_on(agent: Record, op: Record, free: float, end: float, fire: float) -> None:
    """The end of an op on a pipe is known: the pipe goes to its next one at `free`."""
    op.end = end
    op.fire = fire
    agent.free = free
    agent.done = max(agent.done, end)
    agent.next = op.next
