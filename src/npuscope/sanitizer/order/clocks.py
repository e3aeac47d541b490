"""What each agent knows to be complete (vector clocks), compiled.

An agent's clock is the number of its rows. ``clock[core, p, q]`` is how far agent p knows pipe q of its own core to be
complete, itself included: instructions of one pipe start in order but may overlap, so that only a barrier, or a flag
that comes back, says that an earlier one is done (hardware.md 3.1). What it knows of other cores is a row of
`foreign`, shared by all who know the same and never changed once made.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.events import S
from npuscope.sanitizer.order.state import (
    BEFORE,
    COUNT,
    FOREIGN,
    FOREIGN_ROWS,
    HISTORY,
    INDEXED,
    KNEW,
    KNEW_FOREIGN,
    LEARNT,
    MESSAGES,
    SEEN,
    SINCE,
    VERSION,
)
from npuscope.sanitizer.order.table import KEY, VALUE, find

PIPES = 7


@njit(cache=True)
def joined(foreign: np.ndarray, used: np.ndarray, one: int, other: int) -> int:
    """The foreign row that knows what both rows know."""
    if one == other or other == 0:
        return one
    if one == 0:
        return other
    ahead = behind = False
    for agent in range(foreign.shape[1]):
        if foreign[one, agent] > foreign[other, agent]:
            ahead = True
        elif foreign[one, agent] < foreign[other, agent]:
            behind = True
    if not behind:
        return one
    if not ahead:
        return other
    fresh = used[FOREIGN_ROWS]
    used[FOREIGN_ROWS] = fresh + 1
    for agent in range(foreign.shape[1]):
        foreign[fresh, agent] = max(foreign[one, agent], foreign[other, agent])
    return fresh


@njit(cache=True)
def issue(clock: np.ndarray, foreign: np.ndarray, used: np.ndarray, core: int, pipe: int) -> None:
    """An instruction comes to `pipe` from the scalar unit: what that had waited for when it issued it is done."""
    version = clock[core, S, VERSION]
    if clock[core, pipe, SEEN] == version:
        return
    clock[core, pipe, SEEN] = version
    for other in range(PIPES):
        clock[core, pipe, other] = max(clock[core, pipe, other], clock[core, S, other])
    clock[core, pipe, FOREIGN] = joined(foreign, used, clock[core, pipe, FOREIGN], clock[core, S, FOREIGN])


@njit(cache=True)
def scalar_learnt(clock: np.ndarray, history: np.ndarray, used: np.ndarray, core: int) -> None:
    """The scalar pipe has come to know something: pipes take it over with the next instruction that it gives them, and
    other cores with a flag that it stores in memory after this (see `take_over`)."""
    clock[core, S, VERSION] += 1
    if history.shape[0] == 1:
        return
    row = used[HISTORY]
    used[HISTORY] = row + 1
    history[row, BEFORE] = clock[core, S, LEARNT]
    history[row, SINCE] = clock[core, S, COUNT]
    for other in range(PIPES):
        history[row, KNEW + other] = clock[core, S, other]
    history[row, KNEW_FOREIGN] = clock[core, S, FOREIGN]
    clock[core, S, LEARNT] = row


@njit(cache=True)
def take_over(
    clock: np.ndarray, foreign: np.ndarray, history: np.ndarray, used: np.ndarray, core: int, agent: int, then: int
) -> None:
    """The scalar pipe of `core` has seen what the scalar pipe `agent` of another core stored at clock `then`: it knows
    what that knew when it stored it."""
    sender = agent // PIPES
    row = clock[sender, S, LEARNT]
    while row > 0 and history[row, SINCE] >= then:
        row = history[row, BEFORE]
    fresh = used[FOREIGN_ROWS]
    used[FOREIGN_ROWS] = fresh + 1
    known = history[row, KNEW_FOREIGN]
    for other in range(foreign.shape[1]):
        foreign[fresh, other] = foreign[known, other]
    for other in range(PIPES):
        foreign[fresh, sender * PIPES + other] = max(
            foreign[fresh, sender * PIPES + other], history[row, KNEW + other]
        )
    foreign[fresh, agent] = then
    learn(clock, foreign, history, used, core, S, fresh)


@njit(cache=True)
def message(messages: np.ndarray, index: np.ndarray, used: np.ndarray, key: int) -> int:
    """The row of the message called `key`, one that knows nothing if there was none."""
    slot = find(index, key)
    if index[slot, KEY] != key:
        number = used[MESSAGES]
        used[MESSAGES] = number + 1
        used[INDEXED] += 1
        index[slot, KEY] = key
        index[slot, VALUE] = number
        for column in range(PIPES + 1):
            messages[number, column] = 0
    return index[slot, VALUE]


@njit(cache=True)
def set_flag(clock: np.ndarray, messages: np.ndarray, told: int, core: int, pipe: int) -> None:
    """All that `pipe` did so far is done when the flag, message number `told`, is seen."""
    for other in range(PIPES):
        messages[told, other] = clock[core, pipe, other]
    messages[told, pipe] = clock[core, pipe, COUNT]
    messages[told, PIPES] = clock[core, pipe, FOREIGN]


@njit(cache=True)
def wait_flag(
    clock: np.ndarray, foreign: np.ndarray, history: np.ndarray, used: np.ndarray, messages: np.ndarray, told: int,
    core: int, pipe: int,
) -> None:
    """`pipe` has seen the flag that is message number `told`."""
    for other in range(PIPES):
        clock[core, pipe, other] = max(clock[core, pipe, other], messages[told, other])
    clock[core, pipe, FOREIGN] = joined(foreign, used, clock[core, pipe, FOREIGN], messages[told, PIPES])
    if pipe == S:
        scalar_learnt(clock, history, used, core)


@njit(cache=True)
def drain(clock: np.ndarray, foreign: np.ndarray, history: np.ndarray, used: np.ndarray, core: int) -> None:
    """The scalar unit has waited for all pipes of its core."""
    row = clock[core, S, FOREIGN]
    for pipe in range(PIPES):
        for other in range(PIPES):
            clock[core, S, other] = max(clock[core, S, other], clock[core, pipe, other])
        clock[core, S, pipe] = max(clock[core, S, pipe], clock[core, pipe, COUNT])
        row = joined(foreign, used, row, clock[core, pipe, FOREIGN])
    clock[core, S, FOREIGN] = row
    scalar_learnt(clock, history, used, core)


@njit(cache=True)
def snapshot(clock: np.ndarray, foreign: np.ndarray, used: np.ndarray, core: int, pipe: int) -> int:
    """A foreign row with all that `pipe` knows and did."""
    fresh = used[FOREIGN_ROWS]
    used[FOREIGN_ROWS] = fresh + 1
    known = clock[core, pipe, FOREIGN]
    for agent in range(foreign.shape[1]):
        foreign[fresh, agent] = foreign[known, agent]
    for other in range(PIPES):
        agent = core * PIPES + other
        foreign[fresh, agent] = max(foreign[fresh, agent], clock[core, pipe, other])
    foreign[fresh, core * PIPES + pipe] = clock[core, pipe, COUNT]
    return fresh


@njit(cache=True)
def learn(
    clock: np.ndarray, foreign: np.ndarray, history: np.ndarray, used: np.ndarray, core: int, pipe: int, row: int
) -> None:
    """`pipe` comes to know what a foreign row knows, of its own core too."""
    for other in range(PIPES):
        told = np.int64(foreign[row, core * PIPES + other])
        clock[core, pipe, other] = max(clock[core, pipe, other], told)
    clock[core, pipe, FOREIGN] = joined(foreign, used, clock[core, pipe, FOREIGN], row)
    if pipe == S:
        scalar_learnt(clock, history, used, core)


@njit(cache=True)
def release(
    clock: np.ndarray, foreign: np.ndarray, used: np.ndarray, messages: np.ndarray, told: int, core: int, pipe: int
) -> None:
    """Add what `pipe` knows and did to message number `told`, for other cores; the pipe itself drains (sanitizer.md
    3.8.1)."""
    messages[told, PIPES] = joined(foreign, used, messages[told, PIPES], snapshot(clock, foreign, used, core, pipe))
    clock[core, pipe, pipe] = clock[core, pipe, COUNT]
