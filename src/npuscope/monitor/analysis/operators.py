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


class Operations:
    """The operators of all ranks of a class: (ranks, operators), calls and nanoseconds a step, and a call."""

    def __init__(self, ranks: Sequence[Summary]) -> None:
        self.names = tuple(dict.fromkeys(name for rank in ranks for name in rank.operators.names))
        place = {name: at for at, name in enumerate(self.names)}
        self.calls, self.time = np.zeros((2, len(ranks), len(self.names)))
        for row, rank in enumerate(ranks):
            at = [place[name] for name in rank.operators.names]
            steps = max(len(rank.label), 1)
            self.calls[row, at] = rank.operators.calls / steps
            self.time[row, at] = rank.operators.time / steps
        self.each = np.divide(self.time, self.calls, out=np.full_like(self.time, np.nan), where=self.calls > 0)

    def slower(self, place: int) -> tuple[Slower, ...]:
        """The operators that cost the rank at `place` most beyond its peers, the costliest first."""
        others = np.arange(len(self.calls)) != place
        peers_calls, peers_time = np.median(self.calls[others], 0), np.median(self.time[others], 0)
        peers_each = np.nan_to_num(self._median(others))
        excess = self.time[place] - peers_time
        least = LEAST_SHARE * self.time[place].sum()
        return tuple(
            Slower(
                self.names[at],
                float(self.each[place, at]),
                float(peers_each[at]),
                float(self.calls[place, at]),
                float(peers_calls[at]),
                float(excess[at]),
            )
            for at in np.argsort(-excess)[:MOST].tolist()
            if excess[at] > least
        )

    def alike(self, place: int) -> float | None:
        """How many times as long the operators of the rank at `place` take, where that is nearly the same for what
        makes up nearly all of its compute time; None where it is not, or they take no longer."""
        ratio = self.each[place] / self._median(np.arange(len(self.calls)) != place)
        known = np.isfinite(ratio)
        if known.sum() < LEAST_ALIKE:
            return None
        ratio, weight = ratio[known], self.time[place][known]
        order = np.argsort(ratio)
        middle = float(ratio[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])
        near = np.abs(ratio - middle) <= ALIKE * (middle - 1)
        covered = weight[near].sum() >= ALIKE_TIME * self.time[place].sum()
        return middle if middle > LEAST_RATIO and covered else None

    def _median(self, rows: Column) -> Column:
        """Nanoseconds a call, of some ranks; NaN for what none of them calls."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.nanmedian(self.each[rows], 0)
