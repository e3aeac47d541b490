"""Occupancy: whether the cores share the work evenly (opprof.md 3.8)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.blocks import AI_CORE, core_kinds
from npuscope.profiler.charts.traffic import Ways, ways
from npuscope.profiler.counters import Counters
from npuscope.trace.timeline import Timeline

DIMENSIONS = ("cycles", "throughput", "hit_rate", "instructions")
"""What cores are compared by. `throughput` is bytes to and from GM, `hit_rate` that of L2, `instructions` those of
SIMT functions."""


@dataclass(frozen=True, slots=True)
class CoreLoad:
    """What one core did: `hit_rate` is 0..100, `throughput` bytes; None is not known. `levels` has a level of 0..10 for
    each dimension that could be compared: how far the core lies above (10) or below (0) the mean of the cores of its
    type; 0 where all are equal."""

    block: int
    type: str  # "cube", "vector" or "AiCore"
    number: int  # 0, or 1 for the second vector core of a block
    cycles: int
    throughput: int | None
    hit_rate: float | None
    instructions: int | None = None
    per_cycle: float | None = None  # SIMT instructions in each cycle
    levels: dict[str, float] = field(default_factory=dict)

    @property
    def balanced(self) -> bool:
        """Whether every level that tells anything lies in the middle, 4 to 6."""
        return all(4 <= level <= 6 for level in self.levels.values() if level)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Every core of the launch, and a sentence for each way in which some do more than the others."""

    cores: tuple[CoreLoad, ...]
    advice: tuple[str, ...]


STANDS_OUT = 0.6
"""Score from which a core is named (opprof.md 3.8)."""

WORTH_NAMING = 0.01
"""A core is not named where it differs from the mean by less than this share of it: the model has no noise, so that
one cycle in a million would stand out."""

SENTENCES = {
    "cycles": "take more time than",
    "throughput": "write/read more data than",
    "hit_rate": "cache hit rate lower than",
    "instructions": "execute more instructions than",
}


def occupancy(timeline: Timeline, chip: Chip, counters: Counters) -> Occupancy:
    """How the work of a launch lies on its cores."""
    known = ways(timeline, chip, counters)
    hits, misses = known.l2()
    moved, simt = _main_memory(known), _simt(known)
    cores = []
    for index, (block, name) in enumerate(core_kinds(timeline.launch, chip)):
        total = hits[index] + misses[index]
        issued = None if np.isnan(simt[index]) else int(simt[index])
        busy = counters[1284][index]
        cores.append(
            CoreLoad(
                block,
                name if name == AI_CORE else name[:-1],
                0 if name == AI_CORE else int(name[-1]),
                int(counters.total_cycles[index]),
                None if np.isnan(moved[index]) else int(moved[index]),
                float(100 * hits[index] / total) if total > 0 else None,
                issued,
                float(issued / busy) if issued is not None and busy > 0 else None,
            )
        )
    levels, outstanding = compare(cores)
    leveled = tuple(replace(core, levels=level) for core, level in zip(cores, levels, strict=True))
    return Occupancy(leveled, tuple(advice(cores, outstanding)))


def compare(cores: list[CoreLoad]) -> tuple[list[dict[str, float]], dict[str, list[int]]]:
    """The levels of each core among those of its type, and which cores stand out in each dimension."""
    levels: list[dict[str, float]] = [{} for _ in cores]
    outstanding: dict[str, list[int]] = {dimension: [] for dimension in DIMENSIONS}
    for kind in dict.fromkeys(core.type for core in cores):
        for dimension in DIMENSIONS:
            values = [getattr(core, dimension) if core.type == kind else None for core in cores]
            known = [(index, float(value)) for index, value in enumerate(values) if value is not None]
            if known:
                scored = scores(np.array([value for _, value in known]))
                for (index, _), (score, far) in zip(known, scored, strict=True):
                    levels[index][dimension] = 10 * score
                    bad = 1 - score if dimension == "hit_rate" else score
                    if score and far and bad >= STANDS_OUT:
                        outstanding[dimension].append(index)
    return levels, outstanding


def scores(values: np.ndarray) -> list[tuple[float, bool]]:
    """The score of each value, 0..1 (0 where all are equal), and whether it is far enough from the mean to matter."""
    mean, spread = values.mean(), values.std()
    if spread <= 1e-12 * abs(mean):
        return [(0.0, False)] * values.size
    score = 1 / (1 + np.exp(-(values - mean) / spread))
    far = np.abs(values - mean) >= WORTH_NAMING * abs(mean)
    return list(zip(score.tolist(), far.tolist(), strict=True))


def advice(cores: list[CoreLoad], found: dict[str, list[int]]) -> list[str]:
    """A sentence for each dimension and type of core in which some stand out:
    ``vector0 of core[3] take more time than other vector cores``."""
    sentences = []
    for dimension, indices in found.items():
        for kind in dict.fromkeys(cores[index].type for index in indices):
            named: dict[str, list[int]] = defaultdict(list)
            for index in indices:
                if cores[index].type == kind:
                    named[kind if kind == AI_CORE else f"{kind}{cores[index].number}"].append(cores[index].block)
            which = ", ".join(f"{name} of core{sorted(blocks)}" for name, blocks in sorted(named.items()))
            others = "other cores" if kind == AI_CORE else f"other {kind} cores"
            sentences.append(f"{which} {SENTENCES[dimension]} {others}")
    return sentences


def _main_memory(known: Ways) -> np.ndarray:
    """Bytes that each core moved to and from main memory, (cores,): what its counters of the bus say."""
    terms = {"A2": (128, (1292, 1293, 1294)), "A5": (128, (1058, 1059)), "310P": (512, (18, 19))}
    size, numbers = terms[known.counters.columns]
    rows = np.stack([known.counters[number] for number in numbers])
    return np.asarray(np.where(np.isnan(rows).all(0), np.nan, np.nansum(rows, 0)) * size)


def _simt(known: Ways) -> np.ndarray:
    """Instructions of SIMT functions that each core issued, (cores,); NaN where none is known."""
    return np.asarray(sum(known.counters[number] for number in (1466, 1467, 1468)))
