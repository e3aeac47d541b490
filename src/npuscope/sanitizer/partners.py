"""Which cores a cross-core flag concerns (hardware.md 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from npuscope.trace.schema import CoreInfo, CoreType

VECTORS_PER_CORE = 2
"""Vector cores of an AI core, for launches without cube cores."""
HALVES = 16
"""An AIC's mode 4 numbers from here on belong to its second vector core."""


@dataclass(frozen=True, slots=True)
class Part:
    """All of `senders` must set before the counter that is waited for rises."""

    senders: tuple[int, ...]
    mode: int
    number: int


@lru_cache(maxsize=8)
def groups(cores: Sequence[CoreInfo]) -> dict[int, tuple[int, ...]]:
    """Core number -> the cores of its AI core, the AIC first where there is one."""
    aics = sum(info.type is CoreType.AIC for info in cores)
    per_core = max((len(cores) - aics) // aics, 1) if aics else VECTORS_PER_CORE
    members: dict[int, list[int]] = {}
    for index, info in enumerate(cores):
        owner = info.block if info.type is CoreType.AIC else info.block // per_core
        members.setdefault(owner, []).append(index)
    return {index: tuple(group) for group in members.values() for index in group}


def raised_by(cores: Sequence[CoreInfo], waiter: int, mode: int, number: int) -> Part | None:
    """Who raises counter `number` of `waiter` in `mode`; None where nobody can."""
    own = cores[waiter].type
    group = groups(cores)[waiter]
    others = tuple(core for core in group if cores[core].type is not own)
    if mode == 0:
        return Part(tuple(core for core, info in enumerate(cores) if info.type is own), 0, number)
    if mode == 1:
        same = tuple(core for core in group if cores[core].type is own)
        return Part(same, 1, number) if own is CoreType.AIV else None
    if not others:
        return None
    if mode == 2:
        return Part(others, 2, number)
    if own is CoreType.AIV:
        half = tuple(core for core in group if cores[core].type is own).index(waiter)
        return Part(others, 4, number + HALVES * half)
    half, low = divmod(number, HALVES)
    return Part((others[half],), 4, low) if half < len(others) else None
