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
CLEARLY = 0.5


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
    """Steps that were only inferred are counted from where each recording began. Steps of all ranks end together, with
    a collective: so their lengths vary together, which says which belong to each other whatever the clocks say."""
    inferred = [one for one in ranks if one.source.startswith(INFERRED)]
    if len(inferred) < 2:
        return list(ranks)
    reference = max(inferred, key=lambda one: len(one.label))
    return [_shifted(one, reference) if one in inferred and one is not reference else one for one in ranks]


def _shifted(one: Summary, reference: Summary) -> Summary:
    typical = float(np.median(reference.duration))
    by_clock = round((float(one.end[0]) - float(reference.end[0])) / max(typical, 1.0))
    most = max(len(one.label), len(reference.label))
    by_clock = by_clock if abs(by_clock) < most else 0
    near = sorted({by_clock + at for at in range(-NEAR, NEAR + 1)}, key=lambda lag: abs(lag - by_clock))
    best, cost, usual = _best(one, reference, near)
    if cost > CLEARLY * usual:
        best, other, _ = _best(one, reference, [best, *range(-most + LEAST_SHARED, most - LEAST_SHARED)])
        if other > CLEARLY * cost:
            best = by_clock  # nothing speaks against the clocks
    return replace(one, label=one.label + best)


def _best(one: Summary, reference: Summary, lags: Sequence[int]) -> tuple[int, float, float]:
    """The lag under which the lengths of steps differ least, by how much, and what is usual for other lags."""
    costs = []
    for lag in lags:
        first, last = max(0, -lag), min(len(one.label), len(reference.label) - lag)
        if last - first < min(LEAST_SHARED, len(one.label), len(reference.label)):
            costs.append(np.inf)
            continue
        apart = one.duration[first:last] - reference.duration[first + lag : last + lag]
        costs.append(float(np.median(np.abs(apart))))
    known = [cost for cost in costs if np.isfinite(cost)]
    best = int(np.argmin(costs))
    return lags[best], costs[best], float(np.median(known)) if known else np.inf
