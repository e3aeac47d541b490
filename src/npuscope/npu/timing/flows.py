"""Copies under way, compiled: how the rates of GM and L2 are shared among them (hardware.md 6.6: equally)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.book import N_FLOWS, Book
from npuscope.npu.timing.compiled import inner

LEFT, LONE, GM, L2, WRITES, RATE, ARRIVES = range(7)
FLOW_FIELDS = 7
"""(FLOW_FIELDS, flows) float64: the part that is left (1 at first); cycles that it takes alone; bytes that it asks of
GM and of L2; bytes that it writes; the part done per cycle; when what other copies fetch of it is in L2."""
ROUNDS = 16
"""Rounds in which the rate is found that uses all of a resource; each settles at least one flow."""


@inner
def level(book: Book, resource: int, capacity: float) -> float:
    """Bytes per cycle up to which each flow is served by a resource so that all of it is used and none gets more than
    it can take; infinite where there is enough for all."""
    flows, count = book.flows, book.counts[N_FLOWS]
    wanted, users = 0.0, 0
    for flow in range(count):
        if flows[resource, flow] > 0:
            wanted += flows[resource, flow] / flows[LONE, flow]
            users += 1
    if wanted <= capacity or users == 0:
        return np.inf
    limit = capacity / users
    for _ in range(ROUNDS):
        small, others = 0.0, 0
        for flow in range(count):
            most = flows[resource, flow] / flows[LONE, flow]
            if most > limit:
                others += 1
            else:
                small += most
        if others == 0:
            break
        fresh = (capacity - small) / others
        if fresh <= limit * (1 + 1e-12):
            break
        limit = fresh
    return limit


@inner
def share(book: Book, gm_rate: float, l2_rate: float) -> None:
    """Give every flow its rate."""
    flows, limits = book.flows, book.limits
    limits[0], limits[1] = gm_rate, l2_rate
    for number in range(2):
        limits[number] = level(book, GM + number, limits[number])
    for flow in range(book.counts[N_FLOWS]):
        rate = 1 / flows[LONE, flow]
        if flows[GM, flow] > 0 or flows[WRITES, flow] > 0:  # L2 takes a write no faster than reads get through
            rate = min(rate, limits[0] / max(flows[GM, flow], flows[WRITES, flow]))
        if flows[L2, flow] > 0:
            rate = min(rate, limits[1] / flows[L2, flow])
        flows[RATE, flow] = rate


@inner
def first_to_end(book: Book) -> int:
    """The flow that ends first at the present rates; -1 where there is none."""
    first, least = -1, np.inf
    for flow in range(book.counts[N_FLOWS]):
        rest = book.flows[LEFT, flow] / book.flows[RATE, flow]
        if rest < least:
            first, least = flow, rest
    return first


@inner
def time_left(book: Book, flow: int) -> float:
    """Until a flow ends at its present rate; infinite for none."""
    return book.flows[LEFT, flow] / book.flows[RATE, flow] if flow >= 0 else np.inf


@inner
def advance(book: Book, cycles: float) -> None:
    """Let time pass."""
    if cycles > 0.0:
        for flow in range(book.counts[N_FLOWS]):
            book.flows[LEFT, flow] = max(book.flows[LEFT, flow] - book.flows[RATE, flow] * cycles, 0.0)


@inner
def remove(book: Book, flow: int) -> None:
    """Take a flow out; the last takes its place."""
    book.counts[N_FLOWS] -= 1
    last = book.counts[N_FLOWS]
    for field in range(FLOW_FIELDS):
        book.flows[field, flow] = book.flows[field, last]
    book.flow_ops[flow] = book.flow_ops[last]
