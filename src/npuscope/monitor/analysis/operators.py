"""Which operators of a rank take longer than those of its peers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.reduction import Summary

MOST = 8
LEAST_ALIKE, LEAST_RATIO, ALIKE, ALIKE_TIME = 2, 1.01, 0.25, 0.9
"""Operators are slower alike when those that make up 90 % of the time are within a quarter of the same excess."""
LEAST_SHARE = 0.01
"""Of the rank's compute time a step; smaller excesses are not worth a line."""


@dataclass(frozen=True)
class Slower:
    """An operator that takes a rank longer than the median of its peers. Times are nanoseconds; `excess` is what it
    comes to in a step."""

    name: str
    each: float
    peers_each: float
    calls: float
    peers_calls: float
    excess: float

    @property
    def ratio(self) -> float:
        """How much longer one call takes."""
        return self.each / self.peers_each if self.peers_each else float("inf")


def slower_operators(ranks: Sequence[Summary], place: int) -> tuple[Slower, ...]:
    """The operators of the rank at `place` that cost it most beyond its peers, the costliest first."""
    one = ranks[place]
    if not one.operators.names:
        return ()
    calls, time, each = _by_operator(ranks, one)
    others = np.arange(len(ranks)) != place
    peers_each = _median(each[others])
    peers_calls, peers_time = np.median(calls[others], 0), np.median(time[others], 0)
    excess = time[place] - peers_time
    least = LEAST_SHARE * time[place].sum()
    order = [at for at in np.argsort(-excess)[:MOST].tolist() if excess[at] > least]
    return tuple(
        Slower(
            one.operators.names[at], float(each[place, at]), float(np.nan_to_num(peers_each[at])),
            float(calls[place, at]), float(peers_calls[at]), float(excess[at]),
        )
        for at in order
    )  # fmt: skip


def slower_alike(ranks: Sequence[Summary], place: int) -> float | None:
    """How many times as long the operators of the rank at `place` take, where that is nearly the same for what makes up
    nearly all of its compute time; None where it is not, or they take no longer."""
    one = ranks[place]
    if len(one.operators.names) < LEAST_ALIKE:
        return None
    _, time, each = _by_operator(ranks, one)
    ratio = each[place] / _median(each[np.arange(len(ranks)) != place])
    known = np.isfinite(ratio)
    if not known.any():
        return None
    ratio, weight = ratio[known], time[place][known]
    order = np.argsort(ratio)
    middle = float(ratio[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])
    near = np.abs(ratio - middle) <= ALIKE * (middle - 1)
    return middle if middle > LEAST_RATIO and weight[near].sum() >= ALIKE_TIME * time[place].sum() else None


def _by_operator(ranks: Sequence[Summary], one: Summary) -> tuple[Column, Column, Column]:
    """Calls and nanoseconds a step, and nanoseconds a call, of all ranks: (ranks, the operators of one)."""
    names = {name: at for at, name in enumerate(one.operators.names)}
    calls, time = np.full((2, len(ranks), len(names)), 0.0)
    for row, rank in enumerate(ranks):
        at = np.array([names.get(name, -1) for name in rank.operators.names], np.int64)
        steps = max(len(rank.label), 1)
        calls[row, at[at >= 0]] = rank.operators.calls[at >= 0] / steps
        time[row, at[at >= 0]] = rank.operators.time[at >= 0] / steps
    return calls, time, np.divide(time, calls, out=np.full_like(time, np.nan), where=calls > 0)


def _median(values: Column) -> Column:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what no peer calls is NaN
        return np.nanmedian(values, 0)
