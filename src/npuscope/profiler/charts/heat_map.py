"""The memory graph: what each way between two memories carried, and how near that is to what it can carry
(opprof.md 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class MemoryPath(IntEnum):
    """The ways of the graph, with the viewer's numbers (opprof.md 2.8). A 2 at the end: of the second vector core."""

    GM_TO_L2 = 0
    L2_TO_GM = 1
    L2_TO_L1 = 2
    L1_TO_L2 = 3
    GM_OR_L1_TO_L0A = 4
    GM_OR_L1_TO_L0B = 5
    L0A_TO_CUBE = 6
    L0B_TO_CUBE = 7
    CUBE_TO_L0C = 8
    L0C_TO_L1 = 9
    L0C_TO_L2 = 10
    L0C_TO_CUBE = 11
    L2_TO_UB = 12
    UB_TO_L2 = 13
    UB_TO_VEC = 14
    VEC_TO_UB = 15
    L2_TO_UB_2 = 16
    UB_TO_L2_2 = 17
    UB_TO_VEC_2 = 18
    VEC_TO_UB_2 = 19
    L2_OR_UB_TO_L1 = 20
    L1_TO_L0A = 21
    L2_OR_L1_TO_L0B = 22
    VEC_TO_L0C = 23
    L0C_TO_VEC = 24
    L2_OR_L1_TO_UB = 25
    GM_TO_L0A_AIC = 35
    GM_TO_L0B_AIC = 36
    L1_TO_L0A_AIC = 37
    L1_TO_L0B_AIC = 38
    L0C_TO_FIXP = 39
    FIXP_TO_L2 = 40
    FIXP_TO_L1 = 41
    FIXP_TO_UB = 42
    FIXP_TO_UB_2 = 43
    L1_TO_UB = 44
    L1_TO_UB_2 = 45
    UB_TO_L1 = 46
    UB_TO_L1_2 = 47
    L2_TO_DCACHE = 48
    L2_TO_DCACHE_2 = 49
    DCACHE_TO_L2 = 50
    DCACHE_TO_L2_2 = 51
    VEC_TO_DCACHE = 52
    VEC_TO_DCACHE_2 = 53
    DCACHE_TO_VEC = 54
    DCACHE_TO_VEC_2 = 55

    @property
    def ends(self) -> tuple[str, str]:
        """The boxes that it joins, for people: ``("L2", "UB")``; ``GM/L1`` where two memories share the way."""
        source, target = self.name.removesuffix("_2").removesuffix("_AIC").replace("_OR_", "/").split("_TO_")
        return source, target

    @property
    def second(self) -> bool:
        """Whether it belongs to the block's second vector core."""
        return self.name.endswith("_2")


@dataclass(frozen=True, slots=True)
class Flow:
    """What one way carried: `requests` of its own size, `bytes`, `bandwidth` in GB/s (2^30) over the core's time, and
    `share` of the most it can carry, 0..100. None is not known."""

    path: MemoryPath
    requests: int | None
    bytes: int | None
    bandwidth: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class L2Box:
    """What the L2 cache did with the lines that a block asked for; `rate` is 0..100, None without requests."""

    hits: int
    misses: int
    rate: float | None

    @property
    def requests(self) -> int:
        """Hits and misses."""
        return self.hits + self.misses


@dataclass(frozen=True, slots=True)
class UnitBox:
    """A computing unit, ``Cube``, ``Vector`` or ``Vector1``: its busy cycles out of those of its core, and the share,
    0..100."""

    name: str
    cycles: int | None
    total_cycles: int
    ratio: float | None


@dataclass(frozen=True, slots=True)
class BlockMemory:
    """The graph of one block: an AIC with its AIVs, or a core alone. `kind` is ``cube``, ``vector``, ``mix`` or
    ``AiCore``."""

    block: int
    kind: str
    flows: tuple[Flow, ...]
    l2: L2Box | None
    units: tuple[UnitBox, ...]

    def flow(self, path: MemoryPath) -> Flow | None:
        """What a way carried; None where the block has no such way."""
        return next((flow for flow in self.flows if flow.path is path), None)


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One graph a block; `family` is the viewer's picture: ``910B``, ``910A5`` or ``310P``."""

    family: str
    blocks: tuple[BlockMemory, ...]
