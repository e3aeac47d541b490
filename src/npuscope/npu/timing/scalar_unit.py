"""The scalar unit of a core, compiled: it fetches, executes its own instructions and issues the others (hardware.md
3.1, 6.1)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import NOBODY, Book, last_fired, queue, unfired, wait_for, wake
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import MTE2, MTE3, SLOTS, S, V
from npuscope.npu.timing.l2 import holds
from npuscope.npu.timing.layout import (
    K_DRAIN, K_END, K_LOAD_GM, K_LOAD_UB, K_RESULT, K_STORE_GM, K_STORE_UB, K_WAIT, UNKNOWN_TIME, Record,
)  # fmt: skip

ALL_PIPES = (1 << SLOTS) - 1 & ~(1 << S)
UB_PIPES = 1 << V | 1 << MTE2 | 1 << MTE3
"""Pipes, a bit for each: all, and those that touch UB."""


@inner
def run_scalar(book: Book, counts: Record, settings: Record, number: int) -> bool:
    """Let a core's scalar unit, agent `number`, go on as far as it can; whether its kernel has ended by that."""
    ops, agent = book.ops, book.agents[number]
    core = book.cores[number // SLOTS]
    pipes = book.agents[number : number + SLOTS]
    while agent.next >= 0:
        op = ops[agent.next]
        if op.fetch == UNKNOWN_TIME:
            fetch(book.code[core.place], core, agent, op, settings)
        blocker = unfired(ops, book.links, op.dep0, op.dep_issued)
        if blocker == NOBODY:
            if op.slot != S:
                blocker = issue(book, counts, settings, core, agent, op, number + op.slot)
            else:
                blocker = execute(book, counts, settings, core, agent, op, pipes)
        if blocker != NOBODY:
            wait_for(ops, agent, blocker, number)
            return False
        following = agent.next + 1
        if following >= ops.shape[0] or ops[following].core != op.core:
            agent.next = -1
            return True
        agent.next = following
    return False


@inner
def fetch(code: np.ndarray, core: Record, agent: Record, op: Record, settings: Record) -> None:
    """The code of an op comes out of the instruction cache, and what its call executes before it is done."""
    lost, last = 0.0, code.size - 1
    for line in range(op.line0, op.line1 + 1):
        core.icache += 1
        if code[line % core.code_lines] != line:
            lost += settings.icache_next if code[last] + 1 == line else settings.icache_miss
            code[line % core.code_lines] = code[last] = line
            core.icache_miss += 1
    ready = agent.free + lost
    op.fetch = ready
    op.control = ready + op.hidden
    core.fetch += lost
    core.busy += op.hidden + settings.issue


@inner
def ready_at(book: Book, core: Record, op: Record) -> float:
    """When an op that nothing holds back any more is ready; counts the waiting."""
    ready = op.control
    latest = last_fired(book.ops, book.links, op.dep0, op.dep_issued)
    if latest > ready:
        core.wait += latest - ready
        ready = latest
    return ready


@inner
def issue(book: Book, counts: Record, settings: Record, core: Record, agent: Record, op: Record, number: int) -> int:
    """Put an op into the queue of its pipe, agent `number`. Returns an op that has to leave the queue first and whose
    time is not known yet, else NOBODY."""
    pipe, left = book.agents[number], 0.0
    if op.ahead >= 0:
        left = book.ops[op.ahead].start
        if left == UNKNOWN_TIME:
            return op.ahead
    ready = ready_at(book, core, op)
    if op.ahead >= 0 and left > ready:
        pipe.stall += left - ready
        ready = left
    op.issue = ready
    pipe.last = agent.next
    agent.free = ready + settings.issue
    if pipe.next == agent.next:  # otherwise it is on the list of what holds it up
        queue(book.agents, counts, number)
    return NOBODY


@inner
def undone(ops: np.ndarray, pipes: np.ndarray, chosen: int) -> int:
    """An op on the `chosen` pipes of a core (a bit each) that has been issued and is not known to be complete, or
    NOBODY."""
    for slot in range(SLOTS):
        if chosen >> slot & 1:
            last = pipes[slot].last
            if last >= 0 and ops[last].end == UNKNOWN_TIME:
                return last
    return NOBODY


@inner
def all_done(pipes: np.ndarray, chosen: int) -> float:
    """When everything issued to the `chosen` pipes of a core (a bit each) is complete."""
    latest = 0.0
    for slot in range(SLOTS):
        if chosen >> slot & 1:
            latest = max(latest, pipes[slot].done)
    return latest


@inner
def execute(
    book: Book, counts: Record, settings: Record, core: Record, agent: Record, op: Record, pipes: np.ndarray
) -> int:
    """An instruction of the scalar unit itself. Returns an op that it must wait for and that is not known yet, else
    NOBODY, with its times set."""
    kind, awaited = op.kind, 0
    touches_ub = kind == K_LOAD_UB or kind == K_STORE_UB or kind == K_RESULT  # noqa: PLR1714 - compiles faster
    if kind == K_DRAIN or kind == K_END:  # noqa: PLR1714
        awaited = ALL_PIPES
    elif touches_ub and op.strict:
        awaited = UB_PIPES
    blocker = undone(book.ops, pipes, awaited)
    if kind == K_WAIT:
        blocker = unfired(book.ops, book.links, op.dep_issued, op.dep1)
    if blocker != NOBODY:
        return blocker
    ready, free = ready_at(book, core, op), all_done(pipes, awaited)
    start, end = ready, ready + settings.issue
    if kind == K_WAIT:
        end = max(end, last_fired(book.ops, book.links, op.dep_issued, op.dep1))
        core.wait += end - start
    elif touches_ub:
        if awaited and free > start:
            core.wait += free + settings.flag - start
            start = free + settings.flag
        end = start + (settings.ub_store if kind == K_STORE_UB else settings.ub_load)
        core.stall_ub += end - start - settings.issue
    elif awaited:
        end = max(end, free)
        core.wait += end - start
    elif kind == K_LOAD_GM:
        end = start + through_cache(book, settings, core, op)
    elif kind == K_STORE_GM:
        through_cache(book, settings, core, op)
        end = start + settings.dc_hit
    else:
        end = start + op.busy
        core.busy += op.busy - settings.issue
    op.issue = ready
    op.start = start
    op.end = end
    op.fire = end
    agent.free = end
    agent.done = end
    wake(book.agents, counts, op)
    return NOBODY


@inner
def through_cache(book: Book, settings: Record, core: Record, op: Record) -> float:
    """Cycles of a scalar access to GM through the data cache, which keeps the line."""
    line = op.place >> 6
    place = line % core.data_lines
    if book.data[core.place, place] == line:
        core.dcache_hit += 1
        return settings.dc_hit
    book.data[core.place, place] = line
    core.dcache_miss += 1
    return settings.dc_miss_l2 if holds(book.l2, op.place // settings.line) else settings.dc_miss_gm
