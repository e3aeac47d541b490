"""Warps of SIMT kernels: when each ran, and what held them up (opprof.md 3.7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from npuscope.trace.timeline import UNKNOWN, Timeline

REASONS = (
    "IBuf_Empty",
    "Nop_Cycles",
    "Scoreboard_Not_Ready",
    "Register_bank_conflict",
    "Resource_conflict",
    "Warp_Level_Sync",
    "Divergence_Stack_Spill",
    "Others",
)
ACTIVE = "Active"
MOST_WARPS = 64
"""Warps of a block: 2048 threads, 32 to a warp."""


class WarpFeature(Enum):
    """What only SIMT kernels have."""

    TIMELINE = "Warp timeline"
    STALLS = "Warp stall reasons"
    REGISTERS = "Register status"


@dataclass(frozen=True, slots=True)
class Warp:
    """One warp of a core (an index in ``launch.cores``): its number, its first and last cycle, the most threads that
    were active at once, and how many instructions it issued."""

    core: int
    number: int
    start: int
    end: int
    threads: int
    instructions: int


def warps(timeline: Timeline) -> list[Warp]:
    """The warps in the order of core and number. A record without a start, or that does not end after it, is none."""
    rows = np.flatnonzero(timeline.slice("warp") != UNKNOWN)
    key = timeline.slice("core")[rows] * MOST_WARPS * 2 + timeline.slice("warp")[rows]
    distinct, index = np.unique(key, return_inverse=True)
    start = np.full(distinct.size, np.iinfo(np.int64).max)
    end, threads = np.zeros(distinct.size, np.int64), np.full(distinct.size, UNKNOWN)
    np.minimum.at(start, index, timeline.slice("start")[rows])
    np.maximum.at(end, index, timeline.slice("end")[rows])
    np.maximum.at(threads, index, timeline.slice("threads")[rows])
    counts = np.bincount(index, minlength=distinct.size)
    table = zip(distinct.tolist(), start.tolist(), end.tolist(), threads.tolist(), counts.tolist(), strict=True)
    return [
        Warp(number // (MOST_WARPS * 2), number % (MOST_WARPS * 2), first, last, most, count)
        for number, first, last, most, count in table
        if 0 < first < last
    ]


@dataclass(frozen=True, slots=True)
class StallSamples:
    """Samples of warps by instruction: `address` (instructions,) int64, `counts` (instructions, 9) int64: how often a
    warp was found at the instruction for each of :data:`REASONS`, and last how often it was active."""

    address: np.ndarray
    counts: np.ndarray

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return int(self.counts.sum())

    def top(self) -> list[tuple[str, int]]:
        """The reasons with their counts, the most frequent first; Active is none."""
        totals = self.counts[:, : len(REASONS)].sum(axis=0).tolist()
        return sorted(zip(REASONS, totals, strict=True), key=lambda item: -item[1])

    def percent(self, issued: bool) -> np.ndarray:
        """The share of each instruction in all samples (`issued` true) or in those in which the warp stood still, in
        percent, (instructions,) float64; they add up to 100 where there are samples."""
        mine = self.counts.sum(axis=1) if issued else self.counts[:, : len(REASONS)].sum(axis=1)
        total = mine.sum()
        return mine * 100.0 / total if total else np.zeros(mine.size)

    def details(self, row: int, issued: bool) -> dict[str, int]:
        """The counts of one instruction by reason."""
        names = (*REASONS, ACTIVE) if issued else REASONS
        return dict(zip(names, self.counts[row].tolist(), strict=False))


def is_simt(timeline: Timeline) -> bool:
    """Whether any instruction ran in warps."""
    return bool((timeline.slice("warp") != UNKNOWN).any())


def not_simt(features: Iterable[WarpFeature], operator: str) -> list[str]:
    """What to tell a person who asks for such features of another kernel: one sentence for each."""
    return [f"{feature.value} is not supported: operator {operator} is not a SIMT operator." for feature in features]
