"""The compiled schedule: when every instruction of a launch is issued, starts and is done.

Everything that follows from what is known is worked out at once, core by core and pipe by pipe; only copies
through the memory that all cores share start and end in order of time. So a copy begins when nothing that could come
before it is left, and the result does not depend on the order in which cores are looked at.
"""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import Book, queue, wake
from npuscope.npu.timing.compiled import inner, outer
from npuscope.npu.timing.flows import advance, first_to_end, remove, share
from npuscope.npu.timing.heap import pop, push
from npuscope.npu.timing.kinds import MTE2, SLOTS, S
from npuscope.npu.timing.l2 import DIRTY_VICTIM, HIT, MISS, SECTOR, count_line, touch
from npuscope.npu.timing.layout import UNKNOWN_TIME, Record
from npuscope.npu.timing.pipes import NO_COPY, pass_on, run_pipe
from npuscope.npu.timing.scalar_unit import run_scalar


@outer
def schedule(book: Book, counting: np.ndarray, facts: np.ndarray, places: int) -> None:
    """Fill in the times of `book`, and leave in its L2 what the launch does. `counting` and `facts` are (1,) records of
    layout.COUNTS and layout.SETTINGS; the chip runs `places` blocks at a time."""
    counts, settings = counting[0], facts[0]
    agents, blocks = book.agents.size, book.blocks.size - 1
    while counts.begun < min(places, blocks):
        begin(book.cores, book.blocks, book.agents, counts, settings.overhead + counts.begun * settings.dispatch, -1)
    now = 0.0
    while True:
        # Everything that follows from what is known.
        while counts.todo >= 0:
            number = counts.todo
            agent = book.agents[number]
            counts.todo = agent.after
            agent.queued = 0
            if number % SLOTS == S:
                if run_scalar(
                    book.ops, book.links, book.cores, book.agents, book.code, book.data, book.l2, counts, settings,
                    number,
                ):
                    leave(book.cores, book.blocks, book.agents, book.events, counts, number // SLOTS)
                continue
            if agent.next >= 0 and book.ops[agent.next].start != UNKNOWN_TIME:
                continue  # its copy is under way
            start = run_pipe(book.ops, book.links, book.ranges, book.recent, book.agents, counts, number)
            if start != NO_COPY:
                wake(book.agents, counts, book.ops[agent.next])
                push(book.events, counts, start, number)
        # The next thing that happens in the shared memory.
        flow, rest = first_to_end(book.flows, counts.flows), np.inf
        if flow >= 0:
            rest = book.flows[flow].left / book.flows[flow].rate
        coming = book.events[0].time if counts.events else np.inf
        if flow < 0 and coming == np.inf:
            break
        if coming <= now + rest:
            advance(book.flows, counts.flows, max(coming - now, 0.0))
            now = max(coming, now)
            number = book.events[0].number
            pop(book.events, counts)
            if number >= agents:
                if counts.begun < blocks:
                    begin(book.cores, book.blocks, book.agents, counts, now + settings.dispatch, number - agents)
                continue
            start_copy(
                book.ops, book.flows, book.gm, book.l2, book.seen, counts, settings, book.agents[number].next
            )
        else:
            advance(book.flows, counts.flows, rest)
            now += rest
            end_copy(book.ops, book.flows, book.agents, counts, flow, now)
        share(book.flows, counts, settings)


# -- blocks ------------------------------------------------------------------------------------------------------------


@inner
def begin(
    cores: np.ndarray, blocks: np.ndarray, agents: np.ndarray, counts: Record, time: float, ended: int
) -> None:
    """Start the cores of the next block, on those of one that has `ended` and with what their caches hold, or
    (negative) on cores of its own."""
    block = blocks[counts.begun]
    counts.begun += 1
    for number in range(block.first, blocks[counts.begun].first):
        core, agent = cores[number], agents[number * SLOTS + S]
        if ended >= 0:
            core.place = cores[blocks[ended].first + number - block.first].place
        agent.next = core.first_op
        agent.free = time
        core.start = time
        core.end = time
        block.running += 1
        queue(agents, counts, number * SLOTS + S)


@inner
def leave(
    cores: np.ndarray, blocks: np.ndarray, agents: np.ndarray, events: np.ndarray, counts: Record, number: int
) -> None:
    """A core's kernel has ended; with the last one of its block there is room for another block."""
    core = cores[number]
    block = blocks[core.unit]
    core.end = agents[number * SLOTS + S].free
    block.running -= 1
    if block.running == 0:
        end = 0.0
        for other in range(block.first, blocks[core.unit + 1].first):
            end = max(end, cores[other].end)
        push(events, counts, end, agents.size + core.unit)


# -- copies through GM -------------------------------------------------------------------------------------------------


@inner
def start_copy(
    ops: np.ndarray, flows: np.ndarray, gm: np.ndarray, l2: np.ndarray, seen: np.ndarray, counts: Record,
    settings: Record, number: int,
) -> None:
    """A copy begins to move its data: it goes through L2 run by run."""
    op, flow = ops[number], flows[counts.flows]
    counts.flows += 1
    flow.op = number
    flow.left = 1.0
    flow.lone = max(op.busy, 1e-3)
    flow.l2 = op.l2_bytes
    flow.writes = op.bytes if op.slot != MTE2 else 0.0
    flow.gm = 0.0
    flow.arrives = 0.0
    ready = op.start + op.busy + op.latency
    for place in range(op.gm0, op.gm1):
        access = gm[place]
        for one in range(access.count_a):
            for two in range(access.count_b):
                low = access.address + one * access.stride_a + two * access.stride_b
                for _ in range(access.count_c):
                    look_up(l2, seen, counts, settings, op, access, flow, low, ready)
                    low += access.stride_c


@inner
def end_copy(
    ops: np.ndarray, flows: np.ndarray, agents: np.ndarray, counts: Record, number: int, now: float
) -> None:
    """A copy's data has passed the port; its pipe is free, and the copy complete after its latency, but not before
    those ahead of it: a pipe retires its instructions in order, so that one flag can speak for all before it."""
    flow = flows[number]
    op, arrives = ops[flow.op], flow.arrives
    agent = op.core * SLOTS + op.slot
    remove(flows, counts, number)
    end = max(now + (op.latency_hit if op.misses == 0 else op.latency), arrives, agents[agent].done)
    pass_on(agents[agent], op, now, end, end)
    wake(agents, counts, op)
    queue(agents, counts, agent)


@inner
def look_up(
    l2: np.ndarray, seen: np.ndarray, counts: Record, settings: Record, op: Record, access: Record, flow: Record,
    low: int, ready: float,
) -> None:
    """Look up the lines of one run of bytes from `low` on: the bytes that it asks of GM, and when the last of what
    others are fetching arrives."""
    size, asked = settings.line, 0.0
    high = low + access.run_bytes
    weight = access.weight / 1000.0
    for line in range(low // size, (high - 1) // size + 1):
        first, last = max(low, line * size), min(high, (line + 1) * size)
        sectors = (2 << (last - 1 - line * size) // SECTOR) - (1 << (first - line * size) // SECTOR)
        outcome, there = touch(l2, counts, line, sectors, access.write, access.allocate, ready)
        count_line(seen, op.step, line, outcome == HIT)
        if outcome == HIT:
            op.hits += 1
            flow.arrives = max(flow.arrives, there)
            continue
        op.misses += 1
        op.victims += outcome > MISS
        if outcome == DIRTY_VICTIM:
            asked += size * settings.write_weight
        if not access.write:
            asked += (last - first) * weight
        elif not access.allocate:
            asked += (last - first) * weight * settings.write_weight
    flow.gm += asked
