"""The arrays of the compiled schedule, in bundles, and the lists of who waits for what.

An *agent* is the scalar unit or a pipe of a core, number ``core * SLOTS + slot``. One that cannot go on waits for a
single op and is looked at again when something about that op becomes known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import SLOTS
from npuscope.npu.timing.layout import DEP0, DEP1, DEP_AT_ISSUE, DEP_DELAY, DEP_OP, FIRE, UNKNOWN_TIME

NOBODY = -1
A_NEXT, A_LAST, A_QUEUED, A_BEHIND, A_HELD = range(5)
"""Of an agent: the op it comes to next; the last op issued to it; whether it is on the list; who waits for the same op;
whether it waits for one."""
P_FREE, P_DONE = range(2)
"""Of an agent: when it can take the next op; when all it has done is complete. Of a scalar unit, P_FREE is its time."""
HISTORY = 4
"""Vector instructions before one that are looked at for what it depends on."""
N_TODO, N_FLOWS, N_EVENTS, N_BEGUN = range(4)


class Given(NamedTuple):
    """What is to be done (:mod:`.layout`; `gm`: :mod:`.transfers`). `units`: (cores,) the block of each core,
    ascending; `first_core`: (blocks + 1,) its first core; `first_op`: (cores,); `is_aic`: (cores,); `cached`: (2,)
    lines of the data cache of an AIV and of an AIC; `lines`: (2,) lines of their instruction caches; `settings`."""

    ops: np.ndarray
    costs: np.ndarray
    deps: np.ndarray
    ranges: np.ndarray
    gm: np.ndarray
    units: np.ndarray
    first_core: np.ndarray
    first_op: np.ndarray
    is_aic: np.ndarray
    cached: np.ndarray
    lines: np.ndarray
    settings: np.ndarray


class Found(NamedTuple):
    """What comes out: `times`, `result`, `cores` (:mod:`.layout`), and `counted` accesses to L2 lines."""

    times: np.ndarray
    result: np.ndarray
    cores: np.ndarray
    counted: np.ndarray


class Book(NamedTuple):
    """How things stand. `agents` (5, agents), `state` (2, agents); `waiting` (ops,): who waits for each; `todo`: agents
    to be looked at; `recent` (cores, HISTORY); `place` (cores,): which core of the chip each runs on; `code` and
    `data`: (places, lines) what the caches of each hold, the last line of `code` being the one that was missed last;
    `running` (blocks,): cores at work; `flows` and `flow_ops`; a heap of `event_times` and `events`; `counts`: N_*;
    `limits`."""

    agents: np.ndarray
    state: np.ndarray
    waiting: np.ndarray
    todo: np.ndarray
    recent: np.ndarray
    place: np.ndarray
    code: np.ndarray
    data: np.ndarray
    running: np.ndarray
    flows: np.ndarray
    flow_ops: np.ndarray
    event_times: np.ndarray
    events: np.ndarray
    counts: np.ndarray
    limits: np.ndarray


def new_book(given: Given, first_of_pipe: np.ndarray, places: int, flow_fields: int) -> Book:
    """The start of a launch on a chip that runs `places` of its blocks at a time."""
    cores, blocks = given.units.size, given.first_core.size - 1
    agents = np.full((5, cores * SLOTS), -1, np.int64)
    agents[A_QUEUED] = agents[A_HELD] = 0
    agents[A_NEXT] = first_of_pipe
    widest = int(np.diff(given.first_core).max(initial=1))
    rows = min(places, blocks) * widest
    within = np.arange(cores) - given.first_core[given.units]
    place = np.where(given.units < places, given.units * widest, 0) + within
    return Book(
        agents, np.zeros((2, cores * SLOTS)), np.full(given.ops.shape[0], NOBODY, np.int64),
        np.zeros(cores * SLOTS, np.int64), np.full((cores, HISTORY), -1, np.int64), place,
        np.full((rows, int(given.lines.max()) + 1), -2, np.int64),
        np.full((rows, int(given.cached.max())), -1, np.int64), np.zeros(blocks, np.int64),
        np.zeros((flow_fields, cores * SLOTS)), np.zeros(cores * SLOTS, np.int64),
        np.zeros(cores * SLOTS + blocks + 1), np.zeros(cores * SLOTS + blocks + 1, np.int64), np.zeros(4, np.int64),
        np.zeros(2),
    )  # fmt: skip


@inner
def queue(book: Book, agent: int) -> None:
    """Have an agent looked at again, unless it waits for something."""
    if not book.agents[A_QUEUED, agent] and not book.agents[A_HELD, agent]:
        book.agents[A_QUEUED, agent] = 1
        book.todo[book.counts[N_TODO]] = agent
        book.counts[N_TODO] += 1


@inner
def wait_for(book: Book, op: int, agent: int) -> None:
    """Put an agent on the list of those that wait for an op."""
    book.agents[A_BEHIND, agent] = book.waiting[op]
    book.agents[A_HELD, agent] = 1
    book.waiting[op] = agent


@inner
def wake(book: Book, op: int) -> None:
    """Have everyone looked at who waits for an op."""
    agent = book.waiting[op]
    book.waiting[op] = NOBODY
    while agent != NOBODY:
        following = book.agents[A_BEHIND, agent]
        book.agents[A_HELD, agent] = 0
        queue(book, agent)
        agent = following


@inner
def unfired(given: Given, found: Found, op: int, at_issue: int) -> int:
    """An op that must fire before this one goes on and has not, or NOBODY."""
    for link in range(given.ops[op, DEP0], given.ops[op, DEP1]):
        other = int(given.deps[DEP_OP, link])
        if given.deps[DEP_AT_ISSUE, link] == at_issue and found.times[other, FIRE] == UNKNOWN_TIME:
            return other
    return NOBODY


@inner
def last_fired(given: Given, found: Found, op: int, at_issue: int) -> float:
    """When the last of what an op waits for has reached it; 0 where there is nothing."""
    latest = 0.0
    for link in range(given.ops[op, DEP0], given.ops[op, DEP1]):
        if given.deps[DEP_AT_ISSUE, link] == at_issue:
            other = int(given.deps[DEP_OP, link])
            latest = max(latest, found.times[other, FIRE] + given.deps[DEP_DELAY, link])
    return latest
