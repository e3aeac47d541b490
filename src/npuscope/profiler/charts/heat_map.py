"""The memory graph: what each way between two memories carried, and how near that is to what it can carry
(opprof.md 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.blocks import Block, blocks_of
from npuscope.profiler.charts.traffic import Ways, ways
from npuscope.profiler.counters import Counters
from npuscope.trace.schema import Launch
from npuscope.trace.timeline import Timeline


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


_P = MemoryPath
CUBE_WAYS = {
    "A2": {
        _P.L2_TO_L1: "gm_to_l1", _P.L1_TO_L2: "l1_to_gm", _P.GM_OR_L1_TO_L0A: "to_l0a", _P.GM_OR_L1_TO_L0B: "to_l0b",
        _P.L0A_TO_CUBE: "l0a_to_cube", _P.L0B_TO_CUBE: "l0b_to_cube", _P.CUBE_TO_L0C: "cube_to_l0c",
        _P.L0C_TO_CUBE: "l0c_to_cube", _P.L0C_TO_L1: "l0c_to_l1", _P.L0C_TO_L2: "l0c_to_gm",
        _P.GM_TO_L0A_AIC: "gm_to_l0a", _P.GM_TO_L0B_AIC: "gm_to_l0b", _P.L1_TO_L0A_AIC: "l1_to_l0a",
        _P.L1_TO_L0B_AIC: "l1_to_l0b",
    },
    "A5": {
        _P.L2_TO_L1: "gm_to_l1", _P.GM_OR_L1_TO_L0A: "to_l0a", _P.GM_OR_L1_TO_L0B: "to_l0b",
        _P.L0A_TO_CUBE: "l0a_to_cube", _P.L0B_TO_CUBE: "l0b_to_cube", _P.CUBE_TO_L0C: "cube_to_l0c",
        _P.L0C_TO_CUBE: "l0c_to_cube", _P.L0C_TO_FIXP: "l0c_read", _P.FIXP_TO_L2: "l0c_to_gm",
        _P.FIXP_TO_L1: "l0c_to_l1", _P.FIXP_TO_UB: "l0c_to_ub", _P.FIXP_TO_UB_2: "l0c_to_ub_2",
        _P.L1_TO_UB: "l1_to_ub",
    },
    "310P": {
        _P.L2_OR_UB_TO_L1: "to_l1", _P.L1_TO_L0A: "to_l0a", _P.L2_OR_L1_TO_L0B: "to_l0b",
        _P.L0A_TO_CUBE: "l0a_to_cube", _P.L0B_TO_CUBE: "l0b_to_cube", _P.CUBE_TO_L0C: "cube_to_l0c",
        _P.L0C_TO_CUBE: "l0c_to_cube", _P.VEC_TO_L0C: "vec_to_l0c", _P.L0C_TO_VEC: "l0c_to_vec",
        _P.L2_OR_L1_TO_UB: "to_ub", _P.UB_TO_L2: "ub_to_gm", _P.UB_TO_VEC: "ub_to_vec", _P.VEC_TO_UB: "vec_to_ub",
    },
}  # fmt: skip
"""The ways of a core with a cube, and what is known of them. The path between L1 and L0 has the same place in the
pictures of A2 and A5, though data from GM cannot take it on A5. Which of the two UB data from L1 goes to is not known;
the first one's way stands for both."""

VECTOR_WAYS = {
    "A2": {
        _P.L2_TO_UB: "gm_to_ub", _P.UB_TO_L2: "ub_to_gm", _P.UB_TO_VEC: "ub_to_vec", _P.VEC_TO_UB: "vec_to_ub",
    },
    "A5": {
        _P.L2_TO_UB: "gm_to_ub", _P.UB_TO_L2: "ub_to_gm", _P.UB_TO_VEC: "ub_to_vec", _P.VEC_TO_UB: "vec_to_ub",
        _P.UB_TO_L1: "ub_to_l1", _P.L2_TO_DCACHE: "l2_to_dcache", _P.VEC_TO_DCACHE: "vec_to_dcache",
        _P.DCACHE_TO_VEC: "dcache_to_vec",
    },
}  # fmt: skip
"""The ways of a first vector core."""

DETAIL_WAYS = (_P.GM_TO_L0A_AIC, _P.GM_TO_L0B_AIC, _P.L1_TO_L0A_AIC, _P.L1_TO_L0B_AIC)
"""What ``MemoryDetail`` adds on A2: which of GM and L1 filled L0 (opprof.md 1.4)."""

FAMILIES = {"A2": "910B", "A5": "910A5", "310P": "310P"}


def heat_map(timeline: Timeline, chip: Chip, counters: Counters) -> HeatMap:
    """The memory graph of each block of a launch."""
    graph = _Graph(timeline.launch, ways(timeline, chip, counters))
    return HeatMap(FAMILIES[counters.columns], tuple(graph.block(block) for block in blocks_of(timeline.launch, chip)))


def second(path: MemoryPath) -> MemoryPath:
    """The same way of the block's second vector core."""
    return MemoryPath[f"{path.name}_2"]


class _Graph:
    """Builds the graphs of a launch; every figure is an array over its cores, made once."""

    def __init__(self, launch: Launch, known: Ways) -> None:
        self.known, self.columns = known, known.counters.columns
        self.hits, self.misses = known.l2()
        self.share = known.chip.peak_rates()["gm"] / _at_once(blocks_of(launch, known.chip), known.chip)
        self.tables: dict[MemoryPath, tuple[np.ndarray, np.ndarray, float | None]] = {}
        for path, name in {**CUBE_WAYS[self.columns], **VECTOR_WAYS.get(self.columns, {})}.items():
            way = known.traffic(name)
            assert way is not None, name
            self.tables[path] = (way.requests(known.counters), way.bytes(known.counters), way.ceiling(known.chip))
        self._main_memory()

    def block(self, block: Block) -> BlockMemory:
        """The graph of one block."""
        flows = [self._flow(path, path, list(block.cores.values())) for path in (_P.GM_TO_L2, _P.L2_TO_GM)]
        for name, core in block.cores.items():
            flows.extend(self._of_core(name, core))
        cores = list(block.cores.values())
        return BlockMemory(
            block.number,
            block.kind,
            tuple(sorted(flows, key=lambda flow: flow.path)),
            self._l2(cores),
            tuple(unit for name, core in block.cores.items() for unit in self._units(name, core)),
        )

    def _of_core(self, name: str, core: int) -> list[Flow]:
        """The ways of one core."""
        if not name.startswith("vector"):
            return [self._flow(path, path, [core]) for path in CUBE_WAYS[self.columns]]
        paths = VECTOR_WAYS.get(self.columns, {})
        return [self._flow(path, second(path) if name == "vector1" else path, [core]) for path in paths]

    def _flow(self, path: MemoryPath, shown: MemoryPath, cores: list[int]) -> Flow:
        requests, size, peak = self.tables[path]
        amount = size[cores].sum()
        if np.isnan(amount):
            return Flow(shown, None, None, None, None)
        rate = self.known.rate(size)[cores]
        bandwidth = float(np.nansum(rate)) if not np.isnan(rate).all() else None
        share = 100.0 * min(bandwidth, peak) / peak if bandwidth is not None and peak else None
        return Flow(shown, _whole(requests[cores].sum()), int(amount), bandwidth, share)

    def _main_memory(self) -> None:
        """GM and L2: reads are the misses, writes the lines put out. A block's peak is its share of the chip's rate."""
        known = self.known
        read = known.traffic("gm_to_l2")
        assert read is not None
        self.tables[_P.GM_TO_L2] = (read.requests(known.counters), read.bytes(known.counters), self.share)
        write = known.traffic("l2_to_gm")
        if write is None:
            lines = evicted(known.counters)
            self.tables[_P.L2_TO_GM] = (lines, lines * known.chip.l2_line, self.share)
        else:
            self.tables[_P.L2_TO_GM] = (write.requests(known.counters), write.bytes(known.counters), self.share)

    def _l2(self, cores: list[int]) -> L2Box | None:
        hits, misses = self.hits[cores].sum(), self.misses[cores].sum()
        if np.isnan(hits) or np.isnan(misses) or misses < 0:
            return None
        total = hits + misses
        return L2Box(int(hits), int(misses), float(100 * hits / total) if total else None)

    def _units(self, name: str, core: int) -> list[UnitBox]:
        events = {"A2": (10, 8), "A5": (810, 1281), "310P": (10, 8)}[self.columns]
        wanted = {"cube0": ("Cube",), "vector0": ("Vector",), "vector1": ("Vector1",)}.get(name, ("Cube", "Vector"))
        total = self.known.cycles[core]
        boxes = []
        for unit in wanted:
            busy = self.known.counters[events[unit != "Cube"]][core]
            ratio = None if np.isnan(busy) or not total else float(100 * busy / total)
            boxes.append(UnitBox(unit, _whole(busy), int(total), ratio))
        return boxes


def evicted(counters: Counters) -> np.ndarray:
    """L2 lines written back to GM for each core's sake on A2, (cores,): no more than it missed with a write."""
    return np.asarray(np.fmin(counters[156], counters[1282]))


def _at_once(blocks: list[Block], chip: Chip) -> int:
    """How many blocks run at the same time."""
    vectors = all(block.kind == "vector" for block in blocks)
    return max(min(len(blocks), chip.cores.aiv if vectors else chip.cores.aic), 1)


def _whole(value: float) -> int | None:
    return None if np.isnan(value) else round(float(value))
