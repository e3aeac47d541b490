"""All ranks side by side: (ranks, steps), NaN where a rank lacks a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.reduction import Summary
from npuscope.monitor.analysis.steps import INFERRED

NEAR, LEAST_SHARED = 5, 10
"""How many steps around the first guess are tried, and how many steps two ranks have to share, to be laid together."""
CLEARLY = 0.25
"""The right lag leaves at most this share of what others leave."""


@dataclass(frozen=True)
class Matrices:
    """Ranks in their order, steps in theirs (`label`); `place` says for each rank where its steps stand among them.
    Times are nanoseconds, float64."""

    ranks: tuple[Summary, ...]
    label: Column
    place: tuple[Column, ...]
    duration: Column
    compute: Column
    communication: Column
    exposed: Column

    @property
    def own(self) -> Column:
        """What each rank spent by itself."""
        return self.duration - self.exposed

    @property
    def idle(self) -> Column:
        """Neither kernel nor collective."""
        return self.duration - self.compute - self.exposed


def side_by_side(summaries: Sequence[Summary], skip: int = 0) -> Matrices:
    """Lay the ranks' steps together, without the first `skip` of all."""
    ranks = aligned(sorted(summaries, key=lambda one: one.rank))
    label = np.unique(np.concatenate([one.label for one in ranks]))[skip:]
    place = tuple(np.where(np.isin(one.label, label), np.searchsorted(label, one.label), -1) for one in ranks)

    def filled(name: str) -> Column:
        made = np.full((len(ranks), len(label)), np.nan)
        for row, (one, at) in enumerate(zip(ranks, place, strict=True)):
            made[row, at[at >= 0]] = getattr(one, name)[at >= 0]
        return made

    return Matrices(
        tuple(ranks), label, place,
        filled("duration"), filled("compute"), filled("communication"), filled("exposed"),
    )  # fmt: skip


def aligned(ranks: Sequence[Summary]) -> list[Summary]:
    """Steps that were only inferred are counted from where each recording began.

    A collective ends on all its ranks together, so the times from one such end to the next are the same on all of them,
    whatever their clocks say: that tells which step of one rank is which of another. Ranks that share no communicator
    are laid together through others that do.
    """
    shift: dict[int, int] = {}
    series = {row: _ends(one) for row, one in enumerate(ranks) if one.source.startswith(INFERRED)}
    members: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for row, found in series.items():
        for key in found:
            members.setdefault(key, []).append(row)
    for first in sorted(series, key=lambda row: -len(ranks[row].label)):
        if first in shift:
            continue
        shift[first] = 0
        waiting = [first]
        while waiting:
            row = waiting.pop()
            for key in series[row]:
                for other in members.pop(key, ()):
                    if other not in shift:
                        shift[other] = shift[row] + _lag(series[other][key], series[row][key])
                        waiting.append(other)
    return [replace(one, label=one.label + shift[row]) if row in shift else one for row, one in enumerate(ranks)]


def _ends(one: Summary) -> dict[tuple[str, tuple[int, ...]], Column]:
    """When the last collective of each communicator ended in each step; NaN where there was none."""
    begin = one.end - one.duration
    found = {}
    for part in one.occurrences:
        ends = np.full(len(one.label), np.nan)
        np.fmax.at(ends, part.step, begin[part.step] + part.at.astype(float) + part.duration)
        found[part.comm, part.group.ranks] = ends
    return found


def _lag(one: Column, other: Column) -> int:
    """By how many steps the first series has to be moved to lie beside the second; what the clocks say if nothing else
    tells."""
    if not np.isfinite(one).any() or not np.isfinite(other).any():
        return 0
    typical = float(np.nanmedian(np.diff(other))) if len(other) > 1 else 1.0
    apart = float(one[np.isfinite(one)][0] - other[np.isfinite(other)][0])
    by_clock = round(apart / typical) if typical > 0 else 0
    by_clock += int(np.flatnonzero(np.isfinite(other))[0] - np.flatnonzero(np.isfinite(one))[0])
    most = max(len(one), len(other))
    if abs(by_clock) >= most:
        by_clock = 0
    near = sorted(range(by_clock - NEAR, by_clock + NEAR + 1), key=lambda lag: abs(lag - by_clock))
    best, clear = _best(one, other, near)
    if not clear:
        best, clear = _best(one, other, [by_clock, *range(LEAST_SHARED - most, most - LEAST_SHARED + 1)])
    return best if clear else by_clock


def _best(one: Column, other: Column, lags: Sequence[int]) -> tuple[int, bool]:
    """The lag under which the times between ends differ least, and whether it stands out."""
    costs = np.full(len(lags), np.inf)
    least = min(LEAST_SHARED, len(one), len(other)) - 1
    for at, lag in enumerate(lags):
        first, last = max(0, -lag), min(len(one), len(other) - lag)
        if last - first > least:
            apart = np.diff(one[first:last]) - np.diff(other[first + lag : last + lag])
            known = np.abs(apart[np.isfinite(apart)])
            if len(known) >= least:
                costs[at] = np.median(known)
    best = int(np.argmin(costs))
    known = costs[np.isfinite(costs)]
    return lags[best], bool(len(known)) and bool(costs[best] <= CLEARLY * np.median(known))
