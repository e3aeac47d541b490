"""The scalar unit of a core, compiled: it fetches, executes its own instructions and issues the others (hardware.md
3.1, 6.1)."""

from __future__ import annotations

from npuscope.npu.timing.book import (
    A_LAST,
    A_NEXT,
    NOBODY,
    P_DONE,
    P_FREE,
    Book,
    Found,
    Given,
    last_fired,
    queue,
    unfired,
    wait_for,
    wake,
)  # fmt: skip
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import MTE2, MTE3, SLOTS, S, V
from npuscope.npu.timing.l2 import L2Arrays, holds
from npuscope.npu.timing.layout import (
    AHEAD,
    BUSY,
    C_BUSY,
    C_DCACHE_HIT,
    C_DCACHE_MISS,
    C_FETCH,
    C_ICACHE,
    C_ICACHE_MISS,
    C_STALL,
    C_STALL_UB,
    C_WAIT,
    CONTROL,
    CORE,
    END,
    F_DC_HIT,
    F_DC_MISS_GM,
    F_DC_MISS_L2,
    F_FLAG,
    F_ICACHE_MISS,
    F_ICACHE_NEXT,
    F_ISSUE,
    F_LINE,
    F_UB_LOAD,
    F_UB_STORE,
    FETCH,
    FIRE,
    HIDDEN,
    ISSUE,
    K_DRAIN,
    K_END,
    K_LOAD_GM,
    K_LOAD_UB,
    K_RESULT,
    K_STORE_GM,
    K_STORE_UB,
    K_WAIT,
    KIND,
    LINE0,
    LINE1,
    PLACE,
    SLOT,
    START,
    STRICT,
    UNKNOWN_TIME,
)  # fmt: skip


@inner
def run_scalar(given: Given, found: Found, book: Book, l2: L2Arrays, core: int) -> bool:
    """Let a core's scalar unit go on as far as it can; whether its kernel has ended by that."""
    agent = core * SLOTS + S
    while book.agents[A_NEXT, agent] >= 0:
        op = book.agents[A_NEXT, agent]
        if found.times[op, FETCH] == UNKNOWN_TIME:
            fetch(given, found, book, core, op)
        blocker = unfired(given, found, op, 1)
        if blocker == NOBODY:
            blocker = issue(given, found, book, core, op) if given.ops[op, SLOT] != S else execute(
                given, found, book, l2, core, op
            )
        if blocker != NOBODY:
            wait_for(book, blocker, agent)
            return False
        following = op + 1
        if following >= given.ops.shape[0] or given.ops[following, CORE] != core:
            book.agents[A_NEXT, agent] = -1
            return True
        book.agents[A_NEXT, agent] = following
    return False


@inner
def fetch(given: Given, found: Found, book: Book, core: int, op: int) -> None:
    """The code of an op comes out of the instruction cache, and what its call executes before it is done."""
    place, lost = book.place[core], 0.0
    lines = given.lines[given.is_aic[core]]
    last = book.code.shape[1] - 1
    for line in range(given.ops[op, LINE0], given.ops[op, LINE1] + 1):
        found.cores[C_ICACHE, core] += 1
        if book.code[place, line % lines] != line:
            follows = book.code[place, last] + 1 == line
            lost += given.settings[F_ICACHE_NEXT] if follows else given.settings[F_ICACHE_MISS]
            book.code[place, line % lines] = book.code[place, last] = line
            found.cores[C_ICACHE_MISS, core] += 1
    ready = book.state[P_FREE, core * SLOTS + S] + lost
    found.times[op, FETCH] = ready
    found.times[op, CONTROL] = ready + given.costs[op, HIDDEN]
    found.cores[C_FETCH, core] += lost
    found.cores[C_BUSY, core] += given.costs[op, HIDDEN] + given.settings[F_ISSUE]


@inner
def ready_at(given: Given, found: Found, core: int, op: int) -> float:
    """When an op that nothing holds back any more is ready; counts the waiting."""
    ready = found.times[op, CONTROL]
    latest = last_fired(given, found, op, 1)
    if latest > ready:
        found.cores[C_WAIT, core] += latest - ready
        ready = latest
    return ready


@inner
def issue(given: Given, found: Found, book: Book, core: int, op: int) -> int:
    """Put an op into its pipe's queue. Returns an op that has to leave the queue first and whose time is not known yet,
    else NOBODY."""
    ahead, slot = given.ops[op, AHEAD], given.ops[op, SLOT]
    if ahead >= 0 and found.times[ahead, START] == UNKNOWN_TIME:
        return ahead
    ready = ready_at(given, found, core, op)
    if ahead >= 0 and found.times[ahead, START] > ready:
        found.cores[C_STALL + slot, core] += found.times[ahead, START] - ready
        ready = found.times[ahead, START]
    found.times[op, ISSUE] = ready
    book.agents[A_LAST, core * SLOTS + slot] = op
    book.state[P_FREE, core * SLOTS + S] = ready + given.settings[F_ISSUE]
    if book.agents[A_NEXT, core * SLOTS + slot] == op:  # otherwise it is on the list of what holds it up
        queue(book, core * SLOTS + slot)
    return NOBODY


@inner
def undone(found: Found, book: Book, core: int, first: int, last: int) -> int:
    """An op on pipes `first` to `last` of a core that has been issued and is not known to be complete, or NOBODY."""
    for slot in range(first, last + 1):
        op = book.agents[A_LAST, core * SLOTS + slot]
        if op >= 0 and found.times[op, END] == UNKNOWN_TIME:
            return op
    return NOBODY


@inner
def all_done(book: Book, core: int, first: int, last: int) -> float:
    """When everything issued to pipes `first` to `last` of a core is complete."""
    latest = 0.0
    for slot in range(first, last + 1):
        latest = max(latest, book.state[P_DONE, core * SLOTS + slot])
    return latest


@inner
def execute(given: Given, found: Found, book: Book, l2: L2Arrays, core: int, op: int) -> int:
    """An instruction of the scalar unit itself. Returns an op that it must wait for and that is not known yet, else
    NOBODY, with its times set."""
    kind, settings = given.ops[op, KIND], given.settings
    touches_ub = kind in (K_LOAD_UB, K_STORE_UB, K_RESULT)
    drains = kind in (K_DRAIN, K_END)
    blocker = NOBODY
    if kind == K_WAIT:
        blocker = unfired(given, found, op, 0)
    elif drains:
        blocker = undone(found, book, core, S + 1, SLOTS - 1)
    elif touches_ub and given.ops[op, STRICT]:
        blocker = undone(found, book, core, V, V)
        if blocker == NOBODY:
            blocker = undone(found, book, core, MTE2, MTE3)
    if blocker != NOBODY:
        return blocker
    ready = ready_at(given, found, core, op)
    start, end = ready, ready + settings[F_ISSUE]
    if kind == K_WAIT:
        end = max(end, last_fired(given, found, op, 0))
        found.cores[C_WAIT, core] += end - start
    elif drains:
        end = max(end, all_done(book, core, S + 1, SLOTS - 1))
        found.cores[C_WAIT, core] += end - start
    elif touches_ub:
        if given.ops[op, STRICT]:
            free = max(all_done(book, core, V, V), all_done(book, core, MTE2, MTE3))
            if free > start:
                found.cores[C_WAIT, core] += free + settings[F_FLAG] - start
                start = free + settings[F_FLAG]
        end = start + settings[F_UB_STORE if kind == K_STORE_UB else F_UB_LOAD]
        found.cores[C_STALL_UB, core] += end - start - settings[F_ISSUE]
    elif kind in (K_LOAD_GM, K_STORE_GM):
        cost = through_cache(given, found, book, l2, core, op)
        end = start + (cost if kind == K_LOAD_GM else settings[F_DC_HIT])
    else:
        end = start + given.costs[op, BUSY]
        found.cores[C_BUSY, core] += given.costs[op, BUSY] - settings[F_ISSUE]
    found.times[op, ISSUE], found.times[op, START] = ready, start
    found.times[op, END] = found.times[op, FIRE] = end
    book.state[P_FREE, core * SLOTS + S] = book.state[P_DONE, core * SLOTS + S] = end
    wake(book, op)
    return NOBODY


@inner
def through_cache(given: Given, found: Found, book: Book, l2: L2Arrays, core: int, op: int) -> float:
    """Cycles of a scalar access to GM through the data cache, which keeps the line."""
    line = given.ops[op, PLACE] >> 6
    place = line % given.cached[given.is_aic[core]]
    if book.data[book.place[core], place] == line:
        found.cores[C_DCACHE_HIT, core] += 1
        return given.settings[F_DC_HIT]
    book.data[book.place[core], place] = line
    found.cores[C_DCACHE_MISS, core] += 1
    in_l2 = holds(l2, given.ops[op, PLACE] // int(given.settings[F_LINE]))
    return given.settings[F_DC_MISS_L2] if in_l2 else given.settings[F_DC_MISS_GM]
