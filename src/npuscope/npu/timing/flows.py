"""Copies under way: how the rates of GM and L2 are shared among them (hardware.md 6.6: equally)."""

from __future__ import annotations

import numpy as np
from numba import njit

LEFT, LONE, GM, L2, RATE = range(5)
FLOW_FIELDS = 5
"""(FLOW_FIELDS, flows) float64: the part that is left (1 at first); cycles that it takes alone; bytes that it asks of GM
and of L2; the part done per cycle."""
DONE = 1e-9


@njit(cache=True)
def level(flows: np.ndarray, count: int, resource: int, capacity: float) -> float:
    """Bytes per cycle up to which each flow is served by a resource so that all of it is used and none gets more than
    it can take; infinite where there is enough for all."""
    wanted, users = 0.0, 0
    for flow in range(count):
        if flows[resource, flow] > 0:
            wanted += flows[resource, flow] / flows[LONE, flow]
            users += 1
    if wanted <= capacity or users == 0:
        return np.inf
    limit = capacity / users
    for _ in range(16):
        small, others = 0.0, 0
        for flow in range(count):
            if flows[resource, flow] > 0:
                most = flows[resource, flow] / flows[LONE, flow]
                if most <= limit:
                    small += most
                else:
                    others += 1
        if others == 0:
            break
        fresh = (capacity - small) / others
        if fresh <= limit * (1 + 1e-12):
            break
        limit = fresh
    return limit


@njit(cache=True)
def share(flows: np.ndarray, count: int, gm_rate: float, l2_rate: float) -> None:
    """Give every flow its rate."""
    gm, l2 = level(flows, count, GM, gm_rate), level(flows, count, L2, l2_rate)
    for flow in range(count):
        rate = 1 / flows[LONE, flow]
        if flows[GM, flow] > 0:
            rate = min(rate, gm / flows[GM, flow])
        if flows[L2, flow] > 0:
            rate = min(rate, l2 / flows[L2, flow])
        flows[RATE, flow] = rate


@njit(cache=True)
def next_end(flows: np.ndarray, count: int) -> tuple[int, float]:
    """The flow that ends first at the present rates and how long that takes; -1 and infinity where there is none."""
    first, least = -1, np.inf
    for flow in range(count):
        rest = flows[LEFT, flow] / flows[RATE, flow]
        if rest < least:
            first, least = flow, rest
    return first, least


@njit(cache=True)
def advance(flows: np.ndarray, count: int, cycles: float) -> None:
    """Let time pass."""
    for flow in range(count):
        flows[LEFT, flow] = max(flows[LEFT, flow] - flows[RATE, flow] * cycles, 0.0)


@njit(cache=True)
def remove(flows: np.ndarray, ops: np.ndarray, count: int, flow: int) -> int:
    """Take a flow out; the last takes its place. Returns the new count."""
    count -= 1
    for field in range(flows.shape[0]):
        flows[field, flow] = flows[field, count]
    ops[flow] = ops[count]
    return count
