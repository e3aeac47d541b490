"""The arrays of the compiled schedule, in one bundle, and the lists of who waits for what.

An *agent* is the scalar unit or a pipe of a core, number ``core * SLOTS + slot``. One that cannot go on waits for a
single op and is looked at again when something about that op becomes known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import SLOTS
from npuscope.npu.timing.layout import AGENT, BLOCK, CORE, COUNTS, EVENT, FLOW, UNKNOWN_TIME, Record

NOBODY = -1
HISTORY = 4
"""Vector instructions before one that are looked at for what it depends on."""


class Book(NamedTuple):
    """What is to be done, and how things stand. Arrays of records (:mod:`.layout`): `ops`, `links`, `gm`
    (transfers.ACCESS), `cores`, `agents`, `blocks` (one more than there are), `flows`, a heap of `events`, and the hash
    table `seen`. `l2`: (sets, ways) of l2.LINE. Arrays of int64:
    `ranges`; `recent` (cores, HISTORY); `code` and `data` (places, lines), what the caches of each core of the chip
    hold, the last line of `code` being the one that was missed last."""

    ops: np.ndarray
    links: np.ndarray
    ranges: np.ndarray
    gm: np.ndarray
    cores: np.ndarray
    agents: np.ndarray
    blocks: np.ndarray
    flows: np.ndarray
    events: np.ndarray
    seen: np.ndarray
    l2: np.ndarray
    recent: np.ndarray
    code: np.ndarray
    data: np.ndarray


class Room(NamedTuple):
    """What :class:`Book` needs besides what is to be done."""

    cores: np.ndarray
    agents: np.ndarray
    blocks: np.ndarray
    flows: np.ndarray
    events: np.ndarray
    recent: np.ndarray
    code: np.ndarray
    data: np.ndarray
    counts: np.ndarray


def new_room(units: np.ndarray, is_cube: np.ndarray, caches: np.ndarray, places: int) -> Room:
    """The start of a launch on a chip that runs `places` of its blocks at a time. `units`: (cores,) the block of each
    core, ascending; `is_cube`: (cores,) 0 or 1; `caches`: (2, 2) lines of the instruction cache and of the data cache
    of an AIV and of an AIC."""
    count, blocks = units.size, int(units.max(initial=-1)) + 1
    first = np.searchsorted(units, np.arange(blocks + 1))
    widest = int(np.diff(first).max(initial=1))
    cores = np.zeros(count, CORE)
    cores["unit"], cores["first_op"] = units, NOBODY
    cores["place"] = np.where(units < places, units * widest, 0) + np.arange(count) - first[units]
    cores["code_lines"], cores["data_lines"] = caches[:, is_cube]
    agents = np.zeros(count * SLOTS, AGENT)
    for name in ("next", "last", "after", "behind"):
        agents[name] = NOBODY
    room = np.zeros(blocks + 1, BLOCK)
    room["first"] = first
    counts = np.zeros(1, COUNTS)
    counts["todo"] = NOBODY
    rows = min(places, blocks) * widest
    return Room(
        cores, agents, room, np.zeros(count * SLOTS, FLOW), np.zeros(count * SLOTS + blocks + 1, EVENT),
        np.full((count, HISTORY), -1, np.int64), np.full((rows, int(caches[0].max()) + 1), -2, np.int64),
        np.full((rows, int(caches[1].max())), -1, np.int64), counts,
    )  # fmt: skip


def records(array: np.ndarray) -> np.ndarray:
    """An array whose records have attributes also where nothing is compiled (NUMBA_DISABLE_JIT)."""
    return array.view(np.recarray) if array.dtype.names else array


@inner
def queue(agents: np.ndarray, counts: Record, number: int) -> None:
    """Have an agent looked at again, unless it waits for something."""
    agent = agents[number]
    if agent.queued == 0 and agent.held == 0:
        agent.queued = 1
        agent.after = counts.todo
        counts.todo = number


@inner
def wait_for(ops: np.ndarray, agent: Record, op: int, number: int) -> None:
    """Put an agent, which has that number, on the list of those that wait for an op."""
    agent.behind = ops[op].waiting
    agent.held = 1
    ops[op].waiting = number


@inner
def wake(agents: np.ndarray, counts: Record, op: Record) -> None:
    """Have everyone looked at who waits for an op."""
    number = op.waiting
    op.waiting = NOBODY
    while number != NOBODY:
        agent = agents[number]
        agent.held = 0
        queue(agents, counts, number)
        number = agent.behind


@inner
def unfired(ops: np.ndarray, links: np.ndarray, first: int, end: int) -> int:
    """The first op of some links that has not fired, or NOBODY."""
    for link in range(first, end):
        other = links[link].op
        if ops[other].fire == UNKNOWN_TIME:
            return other
    return NOBODY


@inner
def last_fired(ops: np.ndarray, links: np.ndarray, first: int, end: int) -> float:
    """When the last of what some links tell of has reached who waits for it; 0 where there are none."""
    latest = 0.0
    for number in range(first, end):
        link = links[number]
        latest = max(latest, ops[link.op].fire + link.delay)
    return latest
