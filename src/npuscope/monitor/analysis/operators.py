"""Which operators of a rank take longer than those of its peers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.analysis.reduction import Summary

MOST = 8
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
    names = {name: at for at, name in enumerate(one.operators.names)}
    calls, time = np.full((2, len(ranks), len(names)), 0.0)
    for row, rank in enumerate(ranks):
        at = np.array([names.get(name, -1) for name in rank.operators.names], np.int64)
        steps = max(len(rank.label), 1)
        calls[row, at[at >= 0]] = rank.operators.calls[at >= 0] / steps
        time[row, at[at >= 0]] = rank.operators.time[at >= 0] / steps
    others = np.arange(len(ranks)) != place
    each = np.divide(time, calls, out=np.full_like(time, np.nan), where=calls > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what no peer calls is NaN
        peers_each = np.nanmedian(each[others], 0)
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
