"""Copies under way, compiled: how the rates of GM and L2 are shared among them (hardware.md 6.6: equally)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.compiled import inner
from npuscope.npu.timing.layout import Record

ROUNDS = 16
"""Rounds in which the rate is found that uses all of a resource; each settles at least one flow."""


@inner
def level(flows: np.ndarray, count: int, capacity: float) -> float:
    """Bytes per cycle up to which each flow is served by a resource so that all of it is used and none gets more than
    it would take (`want`); infinite where there is enough for all."""
    wanted, users = 0.0, 0
    for number in range(count):
        if flows[number].want > 0:
            wanted += flows[number].want
            users += 1
    if wanted <= capacity or users == 0:
        return np.inf
    limit = capacity / users
    for _ in range(ROUNDS):
        small, others = 0.0, 0
        for number in range(count):
            if flows[number].want > limit:
                others += 1
            else:
                small += flows[number].want
        if others == 0:
            break
        fresh = (capacity - small) / others
        if fresh <= limit * (1 + 1e-12):
            break
        limit = fresh
    return limit


@inner
def share(flows: np.ndarray, counts: Record, settings: Record) -> None:
    """Give every flow its rate."""
    for number in range(counts.flows):
        flows[number].want = flows[number].gm / flows[number].lone
    gm_limit = level(flows, counts.flows, settings.gm_rate)
    for number in range(counts.flows):
        flows[number].want = flows[number].l2 / flows[number].lone
    l2_limit = level(flows, counts.flows, settings.l2_rate)
    for number in range(counts.flows):
        flow = flows[number]
        rate = 1 / flow.lone
        if flow.gm > 0 or flow.writes > 0:  # L2 takes a write no faster than reads get through
            rate = min(rate, gm_limit / max(flow.gm, flow.writes))
        if flow.l2 > 0:
            rate = min(rate, l2_limit / flow.l2)
        flow.rate = rate


@inner
def first_to_end(flows: np.ndarray, count: int) -> int:
    """The flow that ends first at the present rates; -1 where there is none."""
    first, least = -1, np.inf
    for number in range(count):
        rest = flows[number].left / flows[number].rate
        if rest < least:
            first, least = number, rest
    return first


@inner
def advance(flows: np.ndarray, count: int, cycles: float) -> None:
    """Let time pass."""
    if cycles > 0.0:
        for number in range(count):
            flow = flows[number]
            flow.left = max(flow.left - flow.rate * cycles, 0.0)


@inner
def remove(flows: np.ndarray, counts: Record, flow: int) -> None:
    """Take a flow out; the last takes its place."""
    counts.flows -= 1
    flows[flow] = flows[counts.flows]
