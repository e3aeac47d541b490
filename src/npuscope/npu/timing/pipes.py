"""The pipes of a core, compiled: they take what was issued to them in order (hardware.md 3.1, 3.2)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import HISTORY, NOBODY, last_fired, unfired, wait_for, wake
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import SLOTS
from npuscope.npu.timing.layout import K_BARRIER, K_COPY, K_SET, K_WAIT, RANGES, UNKNOWN_TIME, Record

NO_COPY = -1.0


@inner
def run_pipe(
    ops: np.ndarray, links: np.ndarray, ranges: np.ndarray, recent: np.ndarray, agents: np.ndarray, counts: Record,
    number: int,
) -> float:
    """Let a pipe go on as far as it can. Returns when its next copy through GM could start, NO_COPY where none is
    next."""
    agent = agents[number]
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
            if kind == K_COPY:
                latest = max(start, latest)
                op.start = start if op.strict else latest
                return latest
            start = max(start, latest)
            if op.range >= 0:
                start = after_dependencies(ops, ranges, recent[number // SLOTS], agent.next, start)
            free = start + op.busy
            end = fire = max(free + op.latency, agent.done)
        op.start = start
        pass_on(agent, op, free, end, fire)
        wake(agents, counts, op)
    return NO_COPY


@inner
def after_dependencies(ops: np.ndarray, ranges: np.ndarray, recent: np.ndarray, number: int, start: float) -> float:
    """When a vector instruction can start, as the compiler's barriers let it: not before the end of a recent one where
    one of the two writes what the other touches. It becomes the last of the recent ones."""
    mine = ranges[ops[number].range]
    for place in range(HISTORY):
        if recent[place] >= 0 and ops[recent[place]].end > start:
            other, meets = ranges[ops[recent[place]].range], False
            for pair in range(RANGES * RANGES):
                one, two = 2 * (pair // RANGES), 2 * (pair % RANGES)
                if one == 0 or two == 0:
                    meets = meets or (mine[one] < other[two + 1] and other[two] < mine[one + 1])
            if meets:
                start = ops[recent[place]].end
        if place > 0:
            recent[place - 1] = recent[place]
    recent[HISTORY - 1] = number
    return start


@inner
def pass_on(agent: Record, op: Record, free: float, end: float, fire: float) -> None:
    """The end of an op on a pipe is known: the pipe goes to its next one at `free`."""
    op.end = end
    op.fire = fire
    agent.free = free
    agent.done = max(agent.done, end)
    agent.next = op.next
