"""The scalar unit of a core, compiled: it fetches, executes its own instructions and issues the others (hardware.md
3.1, 6.1)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import NOBODY, last_fired, queue, unfired, wait_for, wake
from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.kinds import MTE2, MTE3, SLOTS, S, V
from npuscope.npu.timing.l2 import holds
from npuscope.npu.timing.layout import (
    K_DRAIN,
    K_END,
    K_LOAD_GM,
    K_LOAD_UB,
    K_RESULT,
    K_STORE_GM,
    K_STORE_UB,
    K_WAIT,
    UNKNOWN_TIME,
    Record,
)  # fmt: skip

ALL_PIPES = (1 << SLOTS) - 1 & ~(1 << S)
UB_PIPES = 1 << V | 1 << MTE2 | 1 << MTE3
"""Pipes, a bit for each: all, and those that touch UB."""


@inner
def run_scalar(
    ops: np.ndarray, links: np.ndarray, cores: np.ndarray, agents: np.ndarray, code: np.ndarray, data: np.ndarray,
    l2: np.ndarray, counts: Record, settings: Record, number: int,
) -> bool:
    """Let a core's scalar unit, agent `number`, go on as far as it can; whether its kernel has ended by that."""
    agent, core = agents[number], cores[number // SLOTS]
    pipes = agents[number : number + SLOTS]
    while agent.next >= 0:
        op = ops[agent.next]
        if op.fetch == UNKNOWN_TIME:
            fetch(code[core.place], core, agent, op, settings)
        blocker = unfired(ops, links, op.dep0, op.dep_issued)
        if blocker == NOBODY:
            ready = max(op.control, last_fired(ops, links, op.dep0, op.dep_issued))
            if op.slot != S:
                blocker = issue(ops, agents, counts, settings, core, agent, op, number + op.slot, ready)
            else:
                blocker = execute(ops, links, l2, data[core.place], settings, core, op, pipes, ready)
                if blocker == NOBODY:
                    agent.free = op.end
                    agent.done = op.end
                    wake(agents, counts, op)
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
def issue(
    ops: np.ndarray, agents: np.ndarray, counts: Record, settings: Record, core: Record, agent: Record, op: Record,
    number: int, ready: float,
) -> int:
    """Put an op that is `ready` into the queue of its pipe, agent `number`. Returns an op that has to leave the queue
    first and whose time is not known yet, else NOBODY."""
    pipe, left = agents[number], 0.0
    if op.ahead >= 0:
        left = ops[op.ahead].start
        if left == UNKNOWN_TIME:
            return op.ahead
    core.wait += ready - op.control
    if op.ahead >= 0 and left > ready:
        pipe.stall += left - ready
        ready = left
    op.issue = ready
    pipe.last = agent.next
    agent.free = ready + settings.issue
    if pipe.next == agent.next:  # otherwise it is on the list of what holds it up
        queue(agents, counts, number)
    return NOBODY


@inner
def completed(ops: np.ndarray, pipes: np.ndarray, chosen: int) -> tuple[int, float]:
    """An op on the `chosen` pipes of a core (a bit each) that has been issued and is not known to be complete, or
    NOBODY; and when everything that was issued to them is complete, as far as that is known."""
    latest = 0.0
    for slot in range(SLOTS):
        if chosen >> slot & 1:
            last = pipes[slot].last
            if last >= 0 and ops[last].end == UNKNOWN_TIME:
                return last, latest
            latest = max(latest, pipes[slot].done)
    return NOBODY, latest


@inner
def execute(
    ops: np.ndarray, links: np.ndarray, l2: np.ndarray, data: np.ndarray, settings: Record, core: Record, op: Record,
    pipes: np.ndarray, ready: float,
) -> int:
    """An instruction of the scalar unit itself, which is `ready`. Returns an op that it must wait for and that is not
    known yet, else NOBODY, with its times set."""
    kind, awaited, blocker = op.kind, 0, NOBODY
    touches_ub = kind == K_LOAD_UB or kind == K_STORE_UB or kind == K_RESULT  # noqa: PLR1714 - compiles faster
    if kind == K_DRAIN or kind == K_END:  # noqa: PLR1714, SIM109
        awaited = ALL_PIPES
    elif touches_ub and op.strict == 1:
        awaited = UB_PIPES
    blocker, free = completed(ops, pipes, awaited)
    if kind == K_WAIT:
        blocker = unfired(ops, links, op.dep_issued, op.dep1)
    if blocker != NOBODY:
        return blocker
    core.wait += ready - op.control
    start, end = ready, ready + settings.issue
    if kind == K_WAIT:
        end = max(end, last_fired(ops, links, op.dep_issued, op.dep1))
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
    elif kind == K_LOAD_GM or kind == K_STORE_GM:  # noqa: PLR1714, SIM109
        cost = through_cache(l2, data, settings, core, op)
        end = start + (cost if kind == K_LOAD_GM else settings.dc_hit)
    else:
        end = start + op.busy
        core.busy += op.busy - settings.issue
    op.issue = ready
    op.start = start
    op.end = end
    op.fire = end
    return NOBODY


@inner
def through_cache(l2: np.ndarray, data: np.ndarray, settings: Record, core: Record, op: Record) -> float:
    """Cycles of a scalar access to GM through the data cache, which keeps the line."""
    line = op.place >> 6
    place = line % core.data_lines
    if data[place] == line:
        core.dcache_hit += 1
        return settings.dc_hit
    data[place] = line
    core.dcache_miss += 1
    return settings.dc_miss_l2 if holds(l2, op.place // settings.line) else settings.dc_miss_gm
