"""What each agent knows to be complete (vector clocks), compiled.

An agent's clock is the number of its rows. ``known[core, p, q]`` is how far agent p knows pipe q of its own core to be
complete, itself included: instructions of one pipe start in order but may overlap, so that only a barrier, or a flag
that comes back, says that an earlier one is done (hardware.md 3.1). What it knows of other cores is a row of
`foreign_rows`, shared by all who know the same and never changed once made.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.sanitizer.order.events import S
from npuscope.sanitizer.order.state import FOREIGN_ROWS, MESSAGES, State
from npuscope.sanitizer.order.table import find

PIPES = 7


@njit(cache=True)
def joined(st: State, one: int, other: int) -> int:
    """The foreign row that knows what both rows know."""
    if one == other or other == 0:
        return one
    if one == 0:
        return other
    rows = st.foreign_rows
    ahead = behind = False
    for agent in range(rows.shape[1]):
        if rows[one, agent] > rows[other, agent]:
            ahead = True
        elif rows[one, agent] < rows[other, agent]:
            behind = True
    if not behind:
        return one
    if not ahead:
        return other
    fresh = st.used[FOREIGN_ROWS]
    st.used[FOREIGN_ROWS] = fresh + 1
    for agent in range(rows.shape[1]):
        rows[fresh, agent] = max(rows[one, agent], rows[other, agent])
    return fresh


@njit(cache=True)
def issue(st: State, core: int, pipe: int) -> None:
    """An instruction comes to `pipe` from the scalar unit: what that had waited for when it issued it is done."""
    if st.seen[core, pipe] == st.version[core]:
        return
    st.seen[core, pipe] = st.version[core]
    for other in range(PIPES):
        st.known[core, pipe, other] = max(st.known[core, pipe, other], st.known[core, S, other])
    st.foreign[core, pipe] = joined(st, st.foreign[core, pipe], st.foreign[core, S])


@njit(cache=True)
def message(st: State, key: int) -> int:
    """The number of the message called `key`, a new one that knows nothing if there was none."""
    slot = find(st.message_keys, key)
    if st.message_keys[slot] != key:
        number = st.used[MESSAGES]
        st.used[MESSAGES] = number + 1
        st.message_keys[slot] = key
        st.message_slots[slot] = number
        st.message_known[number, :] = 0
        st.message_foreign[number] = 0
    return st.message_slots[slot]


@njit(cache=True)
def set_flag(st: State, core: int, pipe: int, key: int) -> None:
    """All that `pipe` did so far is done when the flag is seen."""
    number = message(st, key)
    for other in range(PIPES):
        st.message_known[number, other] = st.known[core, pipe, other]
    st.message_known[number, pipe] = st.count[core, pipe]
    st.message_foreign[number] = st.foreign[core, pipe]


@njit(cache=True)
def wait_flag(st: State, core: int, pipe: int, key: int) -> None:
    """`pipe` has seen the flag."""
    number = message(st, key)
    for other in range(PIPES):
        st.known[core, pipe, other] = max(st.known[core, pipe, other], st.message_known[number, other])
    st.foreign[core, pipe] = joined(st, st.foreign[core, pipe], st.message_foreign[number])
    if pipe == S:
        st.version[core] += 1


@njit(cache=True)
def drain(st: State, core: int) -> None:
    """The scalar unit has waited for all pipes of its core."""
    foreign = st.foreign[core, S]
    for pipe in range(PIPES):
        for other in range(PIPES):
            st.known[core, S, other] = max(st.known[core, S, other], st.known[core, pipe, other])
        st.known[core, S, pipe] = max(st.known[core, S, pipe], st.count[core, pipe])
        foreign = joined(st, foreign, st.foreign[core, pipe])
    st.foreign[core, S] = foreign
    st.version[core] += 1


@njit(cache=True)
def snapshot(st: State, core: int, pipe: int) -> int:
    """A foreign row with all that `pipe` knows and did."""
    fresh = st.used[FOREIGN_ROWS]
    st.used[FOREIGN_ROWS] = fresh + 1
    rows = st.foreign_rows
    rows[fresh, :] = rows[st.foreign[core, pipe], :]
    for other in range(PIPES):
        agent = core * PIPES + other
        rows[fresh, agent] = max(rows[fresh, agent], st.known[core, pipe, other])
    rows[fresh, core * PIPES + pipe] = st.count[core, pipe]
    return fresh


@njit(cache=True)
def learn(st: State, core: int, pipe: int, row: int) -> None:
    """`pipe` comes to know what a foreign row knows, of its own core too."""
    for other in range(PIPES):
        told = np.int64(st.foreign_rows[row, core * PIPES + other])
        st.known[core, pipe, other] = max(st.known[core, pipe, other], told)
    st.foreign[core, pipe] = joined(st, st.foreign[core, pipe], row)
    if pipe == S:
        st.version[core] += 1


@njit(cache=True)
def release(st: State, core: int, pipe: int, key: int) -> None:
    """Add what `pipe` knows and did to a message for other cores; the pipe itself drains (sanitizer.md 3.8.1)."""
    number = message(st, key)
    st.message_foreign[number] = joined(st, st.message_foreign[number], snapshot(st, core, pipe))
    st.known[core, pipe, pipe] = st.count[core, pipe]


@njit(cache=True)
def acquire(st: State, core: int, pipe: int, key: int) -> None:
    """Take up a message from other cores."""
    learn(st, core, pipe, st.message_foreign[message(st, key)])
