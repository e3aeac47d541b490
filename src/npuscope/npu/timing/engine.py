"""The compiled schedule: when every instruction of a launch is issued, starts and is done.

Everything that follows from what is known is worked out at once, core by core and pipe by pipe (`settle`); only copies
through the memory that all cores share start and end in order of time. So a copy begins when nothing that could come
before it is left, and the result does not depend on the order in which cores are looked at.
"""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import (
    A_NEXT,
    A_QUEUED,
    N_BEGUN,
    N_EVENTS,
    N_FLOWS,
    N_TODO,
    P_DONE,
    P_FREE,
    Book,
    Found,
    Given,
    queue,
    wake,
)  # fmt: skip
from npuscope.npu.timing.compiled import inner, outer
from npuscope.npu.timing.flows import (
    ARRIVES,
    GM,
    L2,
    LEFT,
    LONE,
    WRITES,
    advance,
    first_to_end,
    remove,
    share,
    time_left,
)
from npuscope.npu.timing.heap import pop, push
from npuscope.npu.timing.kinds import MTE2, SLOTS, S
from npuscope.npu.timing.l2 import DIRTY_VICTIM, HIT, MISS, L2Arrays, count_line, sectors_of, touch
from npuscope.npu.timing.layout import (
    BUSY,
    BYTES,
    C_END,
    C_START,
    CORE,
    F_DISPATCH,
    F_GM_RATE,
    F_L2_RATE,
    F_LINE,
    F_OVERHEAD,
    F_WRITE_WEIGHT,
    GM0,
    GM1,
    HITS,
    L2_BYTES,
    LATENCY,
    LATENCY_HIT,
    MISSES,
    SLOT,
    START,
    STEP,
    UNKNOWN_TIME,
    VICTIMS,
)  # fmt: skip
from npuscope.npu.timing.pipes import NO_COPY, pass_on, run_pipe
from npuscope.npu.timing.scalar_unit import run_scalar
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


@outer
def schedule(given: Given, found: Found, book: Book, l2: L2Arrays, places: int) -> None:
    """Fill `found` and leave in `l2` what the launch does; the chip runs `places` blocks at a time."""
    blocks, agents = given.first_core.size - 1, given.units.size * SLOTS
    while book.counts[N_BEGUN] < min(places, blocks):
        begin(given, found, book, given.settings[F_OVERHEAD] + book.counts[N_BEGUN] * given.settings[F_DISPATCH])
    now = 0.0
    while True:
        settle(given, found, book, l2)
        flow = first_to_end(book)
        rest = time_left(book, flow)
        coming = book.event_times[0] if book.counts[N_EVENTS] else np.inf
        if flow < 0 and coming == np.inf:
            break
        if coming <= now + rest:
            advance(book, max(coming - now, 0.0))
            now = max(coming, now)
            number = book.events[0]
            pop(book)
            if number < agents:
                start_copy(given, found, book, l2, number)
                share(book, given.settings[F_GM_RATE], given.settings[F_L2_RATE])
            elif book.counts[N_BEGUN] < blocks:
                take_over(given, book, number - agents)
                begin(given, found, book, now + given.settings[F_DISPATCH])
        else:
            advance(book, rest)
            now += rest
            end_copy(given, found, book, flow, now)
            share(book, given.settings[F_GM_RATE], given.settings[F_L2_RATE])


@inner
def settle(given: Given, found: Found, book: Book, l2: L2Arrays) -> None:
    """Work out everything that follows from what is known."""
    while book.counts[N_TODO] > 0:
        book.counts[N_TODO] -= 1
        agent = book.todo[book.counts[N_TODO]]
        book.agents[A_QUEUED, agent] = 0
        if agent % SLOTS == S:
            if run_scalar(given, found, book, l2, agent // SLOTS):
                leave(given, found, book, agent // SLOTS)
            continue
        op = book.agents[A_NEXT, agent]
        if op >= 0 and found.times[op, START] != UNKNOWN_TIME:
            continue  # its copy is under way
        start = run_pipe(given, found, book, agent)
        if start != NO_COPY:
            wake(book, book.agents[A_NEXT, agent])
            push(book, start, agent)


# -- blocks ------------------------------------------------------------------------------------------------------------


@inner
def begin(given: Given, found: Found, book: Book, time: float) -> None:
    """Start the cores of the next block."""
    unit = book.counts[N_BEGUN]
    book.counts[N_BEGUN] += 1
    for core in range(given.first_core[unit], given.first_core[unit + 1]):
        agent = core * SLOTS + S
        book.agents[A_NEXT, agent] = given.first_op[core]
        book.state[P_FREE, agent] = time
        found.cores[C_START, core] = found.cores[C_END, core] = time
        book.running[unit] += 1
        queue(book, agent)


@inner
def leave(given: Given, found: Found, book: Book, core: int) -> None:
    """A core's kernel has ended; with the last one of its block there is room for another block."""
    unit = given.units[core]
    found.cores[C_END, core] = book.state[P_FREE, core * SLOTS + S]
    book.running[unit] -= 1
    if book.running[unit] == 0:
        end = 0.0
        for other in range(given.first_core[unit], given.first_core[unit + 1]):
            end = max(end, found.cores[C_END, other])
        push(book, end, given.units.size * SLOTS + unit)


@inner
def take_over(given: Given, book: Book, unit: int) -> None:
    """The next block runs on the cores of one that has ended, with what their caches hold."""
    fresh, first = given.first_core[book.counts[N_BEGUN]], given.first_core[unit]
    for core in range(given.first_core[unit + 1] - first):
        book.place[fresh + core] = book.place[first + core]


# -- copies through GM -------------------------------------------------------------------------------------------------


@inner
def start_copy(given: Given, found: Found, book: Book, l2: L2Arrays, agent: int) -> None:
    """A copy begins to move its data."""
    op, flow = book.agents[A_NEXT, agent], book.counts[N_FLOWS]
    book.flow_ops[flow] = op
    book.flows[LEFT, flow] = 1.0
    book.flows[LONE, flow] = max(given.costs[op, BUSY], 1e-3)
    look_up(given, found, book, l2, op, flow)
    book.flows[L2, flow] = given.costs[op, L2_BYTES]
    book.flows[WRITES, flow] = given.costs[op, BYTES] if given.ops[op, SLOT] != MTE2 else 0.0
    book.counts[N_FLOWS] += 1


@inner
def end_copy(given: Given, found: Found, book: Book, flow: int, now: float) -> None:
    """A copy's data has passed the port; its pipe is free, and the copy complete after its latency, but not before those
    ahead of it: a pipe retires its instructions in order, so that one flag can speak for all before it."""
    op = book.flow_ops[flow]
    agent = given.ops[op, CORE] * SLOTS + given.ops[op, SLOT]
    arrives = book.flows[ARRIVES, flow]
    remove(book, flow)
    end = max(now + given.costs[op, LATENCY_HIT if found.result[op, MISSES] == 0 else LATENCY], arrives)
    end = max(end, book.state[P_DONE, agent])
    pass_on(given, found, book, agent, op, now, end, end)
    queue(book, agent)


@inner
def look_up(given: Given, found: Found, book: Book, l2: L2Arrays, op: int, flow: int) -> None:
    """Take a copy through L2: the bytes that it asks of GM, and when the last of what others are fetching arrives."""
    ready = found.times[op, START] + given.costs[op, BUSY] + given.costs[op, LATENCY]
    book.flows[GM, flow] = book.flows[ARRIVES, flow] = 0.0
    for access in range(given.ops[op, GM0], given.ops[op, GM1]):
        for one in range(given.gm[access, COUNT_A]):
            for two in range(given.gm[access, COUNT_B]):
                low = given.gm[access, ADDRESS] + one * given.gm[access, STRIDE_A] + two * given.gm[access, STRIDE_B]
                for _ in range(given.gm[access, COUNT_C]):
                    look_up_run(given, found, book, l2, op, access, low, flow, ready)
                    low += given.gm[access, STRIDE_C]


@inner
def look_up_run(
    given: Given, found: Found, book: Book, l2: L2Arrays, op: int, access: int, low: int, flow: int, ready: float
) -> None:
    """The lines of one run of bytes from `low` on."""
    size, asked = int(given.settings[F_LINE]), 0.0
    high = low + given.gm[access, RUN_BYTES]
    writes, allocates = given.gm[access, WRITE] == 1, given.gm[access, ALLOCATE] == 1
    weight = given.gm[access, WEIGHT] / 1000.0
    for line in range(low // size, (high - 1) // size + 1):
        first, last = max(low, line * size), min(high, (line + 1) * size)
        outcome, there = touch(
            l2, line, sectors_of(first - line * size, last - line * size), writes, allocates, ready
        )  # fmt: skip
        count_line(found.counted, given.ops[op, STEP], line, outcome == HIT)
        if outcome == HIT:
            found.result[op, HITS] += 1
            book.flows[ARRIVES, flow] = max(book.flows[ARRIVES, flow], there)
            continue
        found.result[op, MISSES] += 1
        found.result[op, VICTIMS] += outcome > MISS
        if outcome == DIRTY_VICTIM:
            asked += size * given.settings[F_WRITE_WEIGHT]
        if not writes:
            asked += (last - first) * weight
        elif not allocates:
            asked += (last - first) * weight * given.settings[F_WRITE_WEIGHT]
    book.flows[GM, flow] += asked
