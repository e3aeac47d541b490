"""The ranks that others wait for, with the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.communicators import Waits, last_share
from npuscope.monitor.analysis.matrices import Matrices
from npuscope.monitor.analysis.operators import Operations, Slower
from npuscope.monitor.analysis.peers import Peers
from npuscope.monitor.analysis.statistics import (
    TESTS,
    Trials,
    change,
    deviation,
    median_interval,
    peers_median,
    tried,
)

STEADY, SPORADIC, AT_START, SINCE = "steady", "sporadic", "at the start", "since a step"
COMPUTE, HOST, BOTH, UNKNOWN = "compute", "host", "compute and host", "unknown"
MOSTLY = 0.6
"""Share of the excess that names its cause."""
SPREAD, ALMOST_ALL = 2.5, 0.9
"""A steadily slow rank is slow in almost all steps, or varies less than this many times as much as its peers."""


@dataclass(frozen=True)
class Limits:
    """What counts as slow: an own time more than `own` above that of the peers which is also more than `step` of the
    whole step, with a confidence of `confidence` that it is no accident."""

    own: float = 0.02
    step: float = 0.005
    confidence: float = 0.999


@dataclass(frozen=True)
class SlowRank:
    """A rank that its peers wait for. Times are nanoseconds a step."""

    row: int
    rank: int
    confidence: float
    pattern: str
    first_step: int | None
    """Of `since`, the first slow step; of `at the start`, the first that is not."""
    slow_steps: int
    steps: int
    excess: float
    """Own time above the peers' median: the median over the slow steps."""
    low: float
    high: float
    """A 95 % interval of it."""
    own: float
    peers_own: float
    cost: float
    """What the excess comes to, as a share of the step, on average over all steps."""
    waiting: float
    peers_waiting: float
    last: float
    """Share of the steps in which none of its peers waited less."""
    compute: float | None
    peers_compute: float | None
    idle: float | None
    peers_idle: float | None
    cause: str
    operators: tuple[Slower, ...]
    alike: float | None
    """How many times as long all operators take, where that is the same for all."""
    peers: int
    about_peers: str

    @property
    def slower(self) -> float:
        """The excess as a share of the peers' own time."""
        return self.excess / self.peers_own if self.peers_own else 0.0


@dataclass(frozen=True)
class Judged:
    """What became of one class: who is slow, and who deviates most where nobody is."""

    slow: tuple[SlowRank, ...]
    largest: tuple[int, float, float] | None
    """Rank, median excess as a share of the peers' own time, and confidence, of the rank that deviates most."""
    steps_needed: int | None
    """So many steps would be needed to name anybody; None where there are enough."""


def judge(matrices: Matrices, waits: Waits, peers: Peers, limits: Limits, ranks: int) -> Judged:
    """Name the slow ranks of a class; `ranks` are compared in all. At least two ranks are in it."""
    rows = peers.rows
    # Without collectives, steps are as long as the program makes them, and only kernels tell the ranks apart.
    talk = bool(np.nansum(matrices.communication[rows]) > 0)
    values = matrices.own[rows] if talk else matrices.compute[rows]
    step = float(np.nanmedian(matrices.duration[rows]))
    typical = float(np.nanmedian(values))
    trials = tried(values, max(limits.own * typical, limits.step * step), limits.step * step)
    tries = TESTS * ranks
    confidence = 1 - np.minimum(np.minimum(trials.steady, trials.burst) * tries, 1.0)
    named = np.flatnonzero(confidence >= limits.confidence)
    look = _Look(matrices, waits, peers, values, trials, step) if len(named) else None
    slow = tuple(look.at(place, float(confidence[place])) for place in named.tolist()) if look else ()
    most = int(trials.steps.max(initial=0))
    needed = int(np.ceil(np.log2(tries / (1 - limits.confidence))))
    largest = None
    if len(named) < len(rows) and np.any(np.isfinite(trials.median)):
        rest = np.where(np.isin(np.arange(len(rows)), named), -np.inf, trials.median)
        place = int(np.nanargmax(rest))
        largest = matrices.ranks[rows[place]].rank, float(rest[place] / typical), float(confidence[place])
    return Judged(slow, largest, needed if most < needed else None)


class _Look:
    """Gathers the evidence about ranks of a class."""

    def __init__(
        self, matrices: Matrices, waits: Waits, peers: Peers, values: Column, trials: Trials, step: float
    ) -> None:
        self.matrices, self.peers, self.trials, self.step = matrices, peers, trials, step
        rows = peers.rows
        self.own = _Beside(values)
        self.waiting = _Beside(waits.waiting[rows])
        self.compute = _Beside(matrices.compute[rows])
        self.idle = _Beside(matrices.idle[rows])
        self.last = last_share(waits.waiting[rows])
        self.operations = Operations([matrices.ranks[row] for row in rows.tolist()])
        self.noise = deviation(trials.excess)

    def at(self, place: int, confidence: float) -> SlowRank:
        """The evidence about the rank at `place` of the class."""
        row = int(self.peers.rows[place])
        excess = self.trials.excess[place]
        pattern, first, slow = self._pattern(place)
        low, high = median_interval(excess[slow])
        compute, idle = self.compute.pair(place, slow), self.idle.pair(place, slow)
        own, waited = self.own.pair(place, slow), self.waiting.pair(place, slow)
        size = float(np.median(excess[slow]))
        rank, steps = self.matrices.ranks[row], int(self.trials.steps[place])
        known = rank.has_kernels
        return SlowRank(
            row=row,
            rank=rank.rank,
            confidence=confidence,
            pattern=pattern,
            first_step=first,
            slow_steps=int((slow & self._above(place)).sum()),
            steps=steps,
            excess=size,
            low=low,
            high=high,
            own=own[0],
            peers_own=own[1],
            cost=float(np.nansum(np.where(slow, excess, 0))) / steps / self.step,
            waiting=waited[0],
            peers_waiting=waited[1],
            last=float(self.last[place]),
            compute=compute[0] if known else None,
            peers_compute=compute[1] if known else None,
            idle=idle[0] if known else None,
            peers_idle=idle[1] if known else None,
            cause=_cause(compute[0] - compute[1], size) if known else UNKNOWN,
            operators=self.operations.slower(place),
            alike=self.operations.alike(place),
            peers=len(self.peers.rows) - 1,
            about_peers=self.peers.about,
        )

    def _above(self, place: int) -> Column:
        excess = self.trials.excess[place]
        return np.isfinite(excess) & (excess > self.trials.margin)

    def _pattern(self, place: int) -> tuple[str, int | None, Column]:
        """When the rank is slow, and in which steps."""
        excess, slow = self.trials.excess[place], self._above(place)
        beyond, label = self.trials.beyond[place], self.matrices.label
        if found := change(excess):
            early = np.arange(len(excess)) < found.at
            if found.before > found.after:
                return AT_START, int(label[found.at]), slow & early
            return SINCE, int(label[found.at]), slow & ~early
        share = slow.sum() / self.trials.steps[place]
        if share > 0.5 and (share >= ALMOST_ALL or deviation(excess) < SPREAD * self.noise):
            return STEADY, None, np.isfinite(excess)
        return SPORADIC, None, slow if share > 0.5 or not beyond.any() else beyond


class _Beside:
    """(ranks, steps), each beside the median of its peers."""

    def __init__(self, values: Column) -> None:
        self.values, self.peers = values, peers_median(values)

    def pair(self, place: int, steps: Column) -> tuple[float, float]:
        """A rank's median over some steps, and that of its peers in the same steps."""
        return float(np.nanmedian(self.values[place, steps])), float(np.nanmedian(self.peers[place, steps]))


def _cause(compute: float, excess: float) -> str:
    share = compute / excess if excess > 0 else 0.0
    if share >= MOSTLY:
        return COMPUTE
    return HOST if share <= 1 - MOSTLY else BOTH


@dataclass(frozen=True)
class SlowNode:
    """A host whose ranks are all slow."""

    host: str
    ranks: tuple[int, ...]


def slow_nodes(matrices: Matrices, slow: Sequence[SlowRank]) -> Iterator[SlowNode]:
    """Hosts with two ranks or more that are all named, while other hosts have ranks that are not."""
    named = {one.rank for one in slow}
    hosts: dict[str, list[int]] = {}
    for one in matrices.ranks:
        hosts.setdefault(one.host, []).append(one.rank)
    if len(hosts) < 2:
        return
    for host, ranks in hosts.items():
        if host and len(ranks) > 1 and named >= set(ranks):
            yield SlowNode(host, tuple(ranks))
