"""The compiled schedule: when every instruction of a launch is issued, starts and is done.

Everything that follows from what is known is worked out at once, core by core and pipe by pipe (`settle`); only copies
through the memory that all cores share start and end in order of time. So a copy begins when nothing that could come
before it is left, and the result does not depend on the order in which cores are looked at.

An *agent* is the scalar unit or a pipe of a core, number ``core * SLOTS + slot``. One that cannot go on waits for a
single op (`waiting`, `behind`: a list for each op) and is looked at again when something about that op becomes known.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from npuscope.npu.timing.flows import FLOW_FIELDS, GM, L2, LEFT, LONE, advance, next_end, remove, share
from npuscope.npu.timing.heap import pop, push
from npuscope.npu.timing.kinds import MTE2, MTE3, SLOTS, S, V
from npuscope.npu.timing.l2 import DIRTY_VICTIM, HIT, MISS, count_line, holds, touch
from npuscope.npu.timing.layout import (
    AHEAD,
    BUSY,
    C_BUSY,
    C_DCACHE_HIT,
    C_DCACHE_MISS,
    C_END,
    C_FETCH,
    C_ICACHE,
    C_ICACHE_MISS,
    C_STALL,
    C_STALL_UB,
    C_START,
    C_WAIT,
    CONTROL,
    CORE,
    DEP0,
    DEP1,
    DEP_AT_ISSUE,
    DEP_DELAY,
    DEP_OP,
    END,
    F_DC_HIT,
    F_DC_MISS_GM,
    F_DC_MISS_L2,
    F_DISPATCH,
    F_FLAG,
    F_GM_RATE,
    F_ICACHE_AIC,
    F_ICACHE_AIV,
    F_ICACHE_MISS,
    F_ICACHE_NEXT,
    F_ISSUE,
    F_L2_RATE,
    F_LINE,
    F_ORDERED,
    F_OVERHEAD,
    F_UB_LOAD,
    F_UB_STORE,
    F_WRITE_WEIGHT,
    FETCH,
    FIRE,
    GM0,
    GM1,
    HIDDEN,
    HITS,
    ISSUE,
    KIND,
    L2_BYTES,
    LATENCY,
    LATENCY_HIT,
    LINE0,
    LINE1,
    MISSES,
    NEXT,
    PLACE,
    RANGE,
    RANGES,
    SLOT,
    START,
    STEP,
    STRICT,
    UNKNOWN_TIME,
    VICTIMS,
)  # fmt: skip
from npuscope.npu.timing.transfers import (
    ADDRESS,
    ALLOCATE,
    COUNT_A,
    COUNT_B,
    COUNT_C,
    RUN_BYTES,
    STRIDE_A,
    STRIDE_B,
    STRIDE_C,
    WEIGHT,
    WRITE,
)  # fmt: skip

SCALAR, WORK, COPY, SET, WAIT, BARRIER, DRAIN, ENDING, LOAD_UB, STORE_UB, LOAD_GM, STORE_GM, RESULT = range(13)
NOBODY = -1
HISTORY = 4
"""Vector instructions before one that are looked at for what it depends on."""
A_NEXT, A_LAST, A_QUEUED, A_BEHIND = range(4)
"""Of an agent: the op it comes to next; the last op issued to it; whether it is on the list; who waits for the same op."""
P_FREE, P_DONE = range(2)
"""Of an agent: when it can take the next op; when all it has done is complete. Of a scalar unit, P_FREE is its time."""


@njit(cache=True)
def known(times: np.ndarray, field: int, op: int) -> bool:
    return op < 0 or times[field, op] != UNKNOWN_TIME


@njit(cache=True)
def queue(agents: np.ndarray, todo: np.ndarray, agent: int) -> None:
    """Have an agent looked at again."""
    if not agents[A_QUEUED, agent]:
        agents[A_QUEUED, agent] = 1
        todo[todo[-1]] = agent
        todo[-1] += 1


@njit(cache=True)
def wait_for(waiting: np.ndarray, agents: np.ndarray, op: int, agent: int) -> None:
    """Put an agent on the list of those that wait for an op."""
    agents[A_BEHIND, agent] = waiting[op]
    waiting[op] = agent


@njit(cache=True)
def wake(waiting: np.ndarray, agents: np.ndarray, todo: np.ndarray, op: int) -> None:
    """Have everyone looked at who waits for an op."""
    agent = waiting[op]
    waiting[op] = NOBODY
    while agent != NOBODY:
        following = agents[A_BEHIND, agent]
        queue(agents, todo, agent)
        agent = following


@njit(cache=True)
def released(ops: np.ndarray, deps: np.ndarray, times: np.ndarray, op: int, at_issue: int) -> tuple[int, float]:
    """(an op that must fire first and has not, or -1; when the last of all fired)."""
    latest = 0.0
    for link in range(ops[DEP0, op], ops[DEP1, op]):
        if deps[DEP_AT_ISSUE, link] != at_issue:
            continue
        other = np.int64(deps[DEP_OP, link])
        if times[FIRE, other] == UNKNOWN_TIME:
            return other, 0.0
        latest = max(latest, times[FIRE, other] + deps[DEP_DELAY, link])
    return -1, latest


# -- the scalar unit ---------------------------------------------------------------------------------------------------


@njit(cache=True)
def fetched(
    ops: np.ndarray, op: int, core: int, code: np.ndarray, lines: int, cores: np.ndarray, settings: np.ndarray
) -> float:
    """Cycles that the scalar unit waits for the lines of code of an op. `code`: (line's tag at each place, ...), the
    last place keeps the line that was missed last."""
    lost = 0.0
    for line in range(ops[LINE0, op], ops[LINE1, op] + 1):
        place = line % lines
        cores[C_ICACHE, core] += 1
        if code[place] != line:
            code[place] = line
            lost += settings[F_ICACHE_NEXT] if code[-1] + 1 == line else settings[F_ICACHE_MISS]
            code[-1] = line
            cores[C_ICACHE_MISS, core] += 1
    return lost


@njit(cache=True)
def undone(agents: np.ndarray, times: np.ndarray, core: int, first: int, last: int) -> int:
    """An op on pipes `first` to `last` of a core that has been issued and is not known to be complete, or -1."""
    for slot in range(first, last + 1):
        op = agents[A_LAST, core * SLOTS + slot]
        if op >= 0 and times[END, op] == UNKNOWN_TIME:
            return op
    return -1


@njit(cache=True)
def all_done(state: np.ndarray, core: int, first: int, last: int) -> float:
    """When everything issued to pipes `first` to `last` of a core is complete."""
    latest = 0.0
    for slot in range(first, last + 1):
        latest = max(latest, state[P_DONE, core * SLOTS + slot])
    return latest


@njit(cache=True)
def run_scalar(
    ops: np.ndarray, costs: np.ndarray, deps: np.ndarray, times: np.ndarray, agents: np.ndarray, state: np.ndarray,
    waiting: np.ndarray, todo: np.ndarray, cores: np.ndarray, code: np.ndarray, data: np.ndarray, tags: np.ndarray,
    settings: np.ndarray, lines: int, core: int,
) -> bool:
    """Let a core's scalar unit go on as far as it can; whether its kernel has ended by that."""
    agent = core * SLOTS + S
    while agents[A_NEXT, agent] >= 0:
        op = agents[A_NEXT, agent]
        if times[FETCH, op] == UNKNOWN_TIME:
            now = state[P_FREE, agent]
            lost = fetched(ops, op, core, code, lines, cores, settings)
            times[FETCH, op] = now + lost
            times[CONTROL, op] = now + lost + costs[HIDDEN, op]
            cores[C_FETCH, core] += lost
            cores[C_BUSY, core] += costs[HIDDEN, op] + settings[F_ISSUE]
        ready = times[CONTROL, op]
        blocker, latest = released(ops, deps, times, op, 1)
        if blocker >= 0:
            wait_for(waiting, agents, blocker, agent)
            return False
        if latest > ready:
            cores[C_WAIT, core] += latest - ready
            ready = latest
        if ops[SLOT, op] != S:
            ahead = ops[AHEAD, op]
            if not known(times, START, ahead):
                wait_for(waiting, agents, ahead, agent)
                return False
            if ahead >= 0 and times[START, ahead] > ready:
                cores[C_STALL + ops[SLOT, op], core] += times[START, ahead] - ready
                ready = times[START, ahead]
            times[ISSUE, op] = ready
            pipe = core * SLOTS + ops[SLOT, op]
            agents[A_LAST, pipe] = op
            queue(agents, todo, pipe)
            state[P_FREE, agent] = ready + settings[F_ISSUE]
        else:
            blocker = execute(ops, costs, deps, times, agents, state, cores, data, tags, settings, core, op, ready)
            if blocker >= 0:
                wait_for(waiting, agents, blocker, agent)
                return False
            state[P_DONE, agent] = times[END, op]
            wake(waiting, agents, todo, op)
        following = op + 1
        if following >= ops.shape[1] or ops[CORE, following] != core:
            agents[A_NEXT, agent] = -1
            return True
        agents[A_NEXT, agent] = following
    return False


@njit(cache=True)
def execute(
    ops: np.ndarray, costs: np.ndarray, deps: np.ndarray, times: np.ndarray, agents: np.ndarray, state: np.ndarray,
    cores: np.ndarray, data: np.ndarray, tags: np.ndarray, settings: np.ndarray, core: int, op: int, ready: float,
) -> int:
    """An instruction of the scalar unit itself. Returns an op that it must wait for and that is not known yet, else -1
    with its times set."""
    kind, agent = ops[KIND, op], core * SLOTS + S
    start, end = ready, ready + settings[F_ISSUE]
    if kind == WAIT:
        blocker, latest = released(ops, deps, times, op, 0)
        if blocker >= 0:
            return blocker
        end = max(end, latest)
        cores[C_WAIT, core] += end - start
    elif kind == DRAIN or kind == ENDING or (kind == SET and ops[STRICT, op]):
        blocker = undone(agents, times, core, S + 1, SLOTS - 1)
        if blocker >= 0:
            return blocker
        end = max(end, all_done(state, core, S + 1, SLOTS - 1))
        cores[C_WAIT, core] += end - start
    elif kind == LOAD_UB or kind == STORE_UB or kind == RESULT:
        if ops[STRICT, op] or kind == RESULT:
            blocker = undone(agents, times, core, V, V)
            if blocker < 0:
                blocker = undone(agents, times, core, MTE2, MTE3)
            if blocker >= 0:
                return blocker
            free = max(all_done(state, core, V, V), all_done(state, core, MTE2, MTE3)) + settings[F_FLAG]
            if free - settings[F_FLAG] > start:
                cores[C_WAIT, core] += free - start
                start, end = free, free + settings[F_ISSUE]
        end = start + settings[F_UB_STORE if kind == STORE_UB else F_UB_LOAD]
        cores[C_STALL_UB, core] += end - start - settings[F_ISSUE]
    elif kind == LOAD_GM:
        end = start + through_cache(ops, cores, data, tags, settings, core, op)
    elif kind == STORE_GM:
        end = start + settings[F_DC_HIT]
        through_cache(ops, cores, data, tags, settings, core, op)
    else:
        end = start + costs[BUSY, op]
        cores[C_BUSY, core] += costs[BUSY, op] - settings[F_ISSUE]
    times[ISSUE, op], times[START, op] = ready, start
    times[END, op] = times[FIRE, op] = end
    state[P_FREE, agent] = end
    return -1


@njit(cache=True)
def through_cache(
    ops: np.ndarray, cores: np.ndarray, data: np.ndarray, tags: np.ndarray, settings: np.ndarray, core: int, op: int
) -> float:
    """Cycles of a scalar access to GM through the data cache, which keeps the line."""
    line = ops[PLACE, op] >> 6
    place = line % data.size
    if data[place] == line:
        cores[C_DCACHE_HIT, core] += 1
        return settings[F_DC_HIT]
    data[place] = line
    cores[C_DCACHE_MISS, core] += 1
    in_l2 = holds(tags, ops[PLACE, op] // np.int64(settings[F_LINE]))
    return settings[F_DC_MISS_L2] if in_l2 else settings[F_DC_MISS_GM]


# -- the pipes ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def depends(ranges: np.ndarray, one: int, other: int) -> bool:
    """Whether a vector instruction must wait for an earlier one: one of them writes what the other touches."""
    for first in range(RANGES):
        for second in range(RANGES):
            if (first == 0 or second == 0) and (
                ranges[2 * first, one] < ranges[2 * second + 1, other]
                and ranges[2 * second, other] < ranges[2 * first + 1, one]
            ):
                return True
    return False


@njit(cache=True)
def run_pipe(
    ops: np.ndarray, costs: np.ndarray, deps: np.ndarray, ranges: np.ndarray, times: np.ndarray, agents: np.ndarray,
    state: np.ndarray, recent: np.ndarray, waiting: np.ndarray, todo: np.ndarray, settings: np.ndarray, agent: int,
) -> float:
    """Let a pipe go on as far as it can. Returns when its next copy through GM could start, -1 where none is next."""
    core = agent // SLOTS
    while agents[A_NEXT, agent] >= 0:
        op = agents[A_NEXT, agent]
        if times[ISSUE, op] == UNKNOWN_TIME:
            return -1.0
        start = max(times[ISSUE, op] + 1.0, state[P_FREE, agent])
        kind = ops[KIND, op]
        blocker, latest = released(ops, deps, times, op, 0)
        if blocker >= 0:
            wait_for(waiting, agents, blocker, agent)
            return -1.0
        if kind == WAIT:
            end = free = fire = max(start + 1.0, latest)
        elif kind == SET:
            end = fire = max(start + 1.0, state[P_DONE, agent])
            free = start + 1.0
        elif kind == BARRIER:
            end = free = fire = max(start + 1.0, state[P_DONE, agent])
        else:
            start = max(start, latest)
            if ops[SLOT, op] == V and ops[RANGE, op] >= 0 and settings[F_ORDERED] == 0.0:
                for place in range(HISTORY):
                    before = recent[core, place]
                    if before >= 0 and times[END, before] > start and depends(ranges, ops[RANGE, op], ops[RANGE, before]):
                        start = times[END, before]
                for place in range(HISTORY - 1):
                    recent[core, place] = recent[core, place + 1]
                recent[core, HISTORY - 1] = op
            if kind == COPY:
                return start
            free = start + costs[BUSY, op]
            end = fire = free + costs[LATENCY, op]
        pass_on(ops, times, agents, state, waiting, todo, agent, op, start, free, end, fire)
    return -1.0


@njit(cache=True)
def pass_on(
    ops: np.ndarray, times: np.ndarray, agents: np.ndarray, state: np.ndarray, waiting: np.ndarray, todo: np.ndarray,
    agent: int, op: int, start: float, free: float, end: float, fire: float,
) -> None:
    """The times of an op on a pipe are known: the pipe goes to its next one."""
    times[START, op], times[END, op], times[FIRE, op] = start, end, fire
    state[P_FREE, agent] = free
    state[P_DONE, agent] = max(state[P_DONE, agent], end)
    agents[A_NEXT, agent] = ops[NEXT, op]
    wake(waiting, agents, todo, op)


# -- copies through GM -------------------------------------------------------------------------------------------------


@njit(cache=True)
def look_up(
    ops: np.ndarray, gm: np.ndarray, tags: np.ndarray, used: np.ndarray, dirty: np.ndarray, clock: np.ndarray,
    counted: np.ndarray, result: np.ndarray, settings: np.ndarray, op: int,
) -> float:
    """Take a copy through L2; returns the bytes that it asks of GM."""
    line_bytes = np.int64(settings[F_LINE])
    asked = 0.0
    for access in range(ops[GM0, op], ops[GM1, op]):
        writes, allocates = gm[WRITE, access] == 1, gm[ALLOCATE, access] == 1
        run, weight = gm[RUN_BYTES, access], gm[WEIGHT, access] / 1000.0
        last = np.int64(-1)
        for one in range(gm[COUNT_A, access]):
            for two in range(gm[COUNT_B, access]):
                for three in range(gm[COUNT_C, access]):
                    low = (
                        gm[ADDRESS, access] + one * gm[STRIDE_A, access] + two * gm[STRIDE_B, access]
                        + three * gm[STRIDE_C, access]
                    )  # fmt: skip
                    for line in range(low // line_bytes, (low + run - 1) // line_bytes + 1):
                        if line == last:
                            continue  # the rest of the line before
                        last = line
                        outcome = touch(tags, used, dirty, clock, line, writes, allocates)
                        count_line(counted, ops[STEP, op], line, outcome == HIT)
                        if outcome == HIT:
                            result[HITS, op] += 1
                            continue
                        result[MISSES, op] += 1
                        result[VICTIMS, op] += outcome > MISS
                        size = min(low + run, (line + 1) * line_bytes) - max(low, line * line_bytes)
                        if outcome == DIRTY_VICTIM:
                            asked += line_bytes * settings[F_WRITE_WEIGHT]
                        if not writes:
                            asked += size * weight
                        elif not allocates:
                            asked += size * weight * settings[F_WRITE_WEIGHT]
    return asked


@njit(cache=True)
def schedule(
    ops: np.ndarray, costs: np.ndarray, deps: np.ndarray, ranges: np.ndarray, gm: np.ndarray, units: np.ndarray,
    is_aic: np.ndarray, places: int, data_lines: np.ndarray, tags: np.ndarray, used: np.ndarray, dirty: np.ndarray,
    clock: np.ndarray, counted: np.ndarray, settings: np.ndarray, times: np.ndarray, result: np.ndarray,
    cores: np.ndarray, first_op: np.ndarray, first_of_pipe: np.ndarray,
) -> None:
    """Fill `times`, `result`, `cores`, and what L2 holds.

    `units`: (cores,) the block that each core belongs to, from 0, ascending; `places`: how many units run at a time;
    `data_lines`: (2,) lines of the data cache of an AIV and an AIC; `first_op`: (cores,); `first_of_pipe`: (agents,).
    """
    count = units.size
    agents = np.full((4, count * SLOTS), -1, np.int64)
    agents[A_QUEUED] = 0
    agents[A_NEXT] = first_of_pipe
    state = np.zeros((2, count * SLOTS))
    recent = np.full((count, HISTORY), -1, np.int64)
    waiting = np.full(ops.shape[1], NOBODY, np.int64)
    todo = np.zeros(count * SLOTS + 1, np.int64)  # the last place: how many
    flows = np.zeros((FLOW_FIELDS, count * SLOTS))
    flow_ops = np.zeros(count * SLOTS, np.int64)
    heap_times, heap_numbers = np.zeros(count * SLOTS + count + 1), np.zeros(count * SLOTS + count + 1, np.int64)
    total_units = units[-1] + 1 if count else 0
    core_of_unit = np.searchsorted(units, np.arange(total_units + 1))
    running = np.zeros(total_units, np.int64)
    place_of = np.zeros(total_units, np.int64)
    most = np.int64(max(settings[F_ICACHE_AIC], settings[F_ICACHE_AIV]))
    widest = 1
    for unit in range(total_units):
        widest = max(widest, core_of_unit[unit + 1] - core_of_unit[unit])
    code = np.full((min(places, total_units) * widest, most + 1), -2, np.int64)
    data = np.full((min(places, total_units) * widest, max(data_lines[0], data_lines[1])), -1, np.int64)
    size = flowing = 0
    now = 0.0
    pending = min(places, total_units)
    for unit in range(pending):
        place_of[unit] = unit
        begin_unit(
            unit, core_of_unit, agents, state, todo, cores, running, first_op,
            settings[F_OVERHEAD] + unit * settings[F_DISPATCH],
        )  # fmt: skip
    while True:
        # everything that follows from what is known
        while todo[-1] > 0:
            todo[-1] -= 1
            agent = todo[todo[-1]]
            agents[A_QUEUED, agent] = 0
            core, slot = agent // SLOTS, agent % SLOTS
            unit = units[core]
            if slot == S:
                row = place_of[unit] * widest + core - core_of_unit[unit]
                lines = np.int64(settings[F_ICACHE_AIC] if is_aic[core] else settings[F_ICACHE_AIV])
                over = run_scalar(
                    ops, costs, deps, times, agents, state, waiting, todo, cores, code[row],
                    data[row, : data_lines[is_aic[core]]], tags, settings, lines, core,
                )  # fmt: skip
                if over:
                    cores[C_END, core] = state[P_FREE, agent]
                    running[unit] -= 1
                    if running[unit] == 0:
                        end = 0.0
                        for other in range(core_of_unit[unit], core_of_unit[unit + 1]):
                            end = max(end, cores[C_END, other])
                        size = push(heap_times, heap_numbers, size, end, count * SLOTS + unit)
            else:
                op = agents[A_NEXT, agent]
                if op >= 0 and times[START, op] != UNKNOWN_TIME:
                    continue  # its copy is under way
                start = run_pipe(
                    ops, costs, deps, ranges, times, agents, state, recent, waiting, todo, settings, agent
                )
                if start >= 0.0:
                    times[START, agents[A_NEXT, agent]] = start
                    wake(waiting, agents, todo, agents[A_NEXT, agent])
                    size = push(heap_times, heap_numbers, size, start, agent)
        # then what comes first: a copy that starts, one that ends, or a block that makes room for the next
        first, rest = next_end(flows, flowing)
        coming = heap_times[0] if size else np.inf
        if first < 0 and size == 0:
            break
        if coming <= now + rest:
            if coming > now:
                advance(flows, flowing, coming - now)
                now = coming
            number = heap_numbers[0]
            size = pop(heap_times, heap_numbers, size)
            if number >= count * SLOTS:
                if pending < total_units:
                    place_of[pending] = place_of[number - count * SLOTS]
                    begin_unit(
                        pending, core_of_unit, agents, state, todo, cores, running, first_op,
                        now + settings[F_DISPATCH],
                    )  # fmt: skip
                    pending += 1
                continue
            op = agents[A_NEXT, number]
            flow_ops[flowing] = op
            flows[LEFT, flowing] = 1.0
            flows[LONE, flowing] = max(costs[BUSY, op], 1e-3)
            flows[GM, flowing] = look_up(ops, gm, tags, used, dirty, clock, counted, result, settings, op)
            flows[L2, flowing] = costs[L2_BYTES, op]
            flowing += 1
        else:
            advance(flows, flowing, rest)
            now += rest
            op = flow_ops[first]
            agent = ops[CORE, op] * SLOTS + ops[SLOT, op]
            flowing = remove(flows, flow_ops, flowing, first)
            hit = result[MISSES, op] == 0 and ops[GM0, op] < ops[GM1, op] or ops[GM0, op] == ops[GM1, op]
            end = now + (costs[LATENCY_HIT, op] if hit else costs[LATENCY, op])
            pass_on(ops, times, agents, state, waiting, todo, agent, op, times[START, op], now, end, end)
            queue(agents, todo, agent)
        share(flows, flowing, settings[F_GM_RATE], settings[F_L2_RATE])


@njit(cache=True)
def begin_unit(
    unit: int, core_of_unit: np.ndarray, agents: np.ndarray, state: np.ndarray, todo: np.ndarray, cores: np.ndarray,
    running: np.ndarray, first_op: np.ndarray, time: float,
) -> None:
    """Start the cores of a block."""
    for core in range(core_of_unit[unit], core_of_unit[unit + 1]):
        agent = core * SLOTS + S
        agents[A_NEXT, agent] = first_op[core]
        state[P_FREE, agent] = time
        cores[C_START, core] = cores[C_END, core] = time
        running[unit] += 1
        queue(agents, todo, agent)
