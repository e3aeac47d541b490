"""Communicators whose transfers take longer than those of others that do the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.analysis.communicators import Communicator
from npuscope.monitor.analysis.matrices import Matrices
from npuscope.monitor.analysis.statistics import median_interval, tried

SAME_SIZE = 1.05
"""Bytes a step that differ by less than this factor are the same."""


@dataclass(frozen=True)
class LinkLimits:
    """A transfer counts as slow when it is more than `transfer` longer than its peers' and that is more than `step` of
    the step, with the confidence that slow ranks need, too."""

    transfer: float = 0.10
    step: float = 0.005
    confidence: float = 0.999


@dataclass(frozen=True)
class SlowLink:
    """A communicator whose pure transfer, waiting left out, is slow. Times are nanoseconds a step."""

    name: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    confidence: float
    transfer: float
    peers_transfer: float
    low: float
    high: float
    """A 95 % interval of the difference."""
    cost: float
    bytes: float
    slow_steps: int
    steps: int
    peers: int

    @property
    def slower(self) -> float:
        """The difference as a share of the peers' transfer."""
        return self.transfer / self.peers_transfer - 1 if self.peers_transfer else 0.0


def slow_links(
    matrices: Matrices, communicators: Sequence[Communicator], limits: LinkLimits
) -> tuple[tuple[SlowLink, ...], int]:
    """The slow ones, and how many communicators could be compared at all."""
    classes: dict[tuple, list[Communicator]] = {}
    for one in communicators:
        size = float(np.median(one.bytes[one.last >= 0])) if np.any(one.last >= 0) else 0.0
        if len(one.rows) > 1 and np.any(one.last >= 0):
            known = round(np.log(size) / np.log(SAME_SIZE)) if size > 0 else -1
            key = (len(one.rows), one.count, tuple(sorted(one.operations)), known, _spread(matrices, one))
            classes.setdefault(key, []).append(one)
    comparable = [alike for alike in classes.values() if len(alike) > 1]
    count = sum(map(len, comparable))
    step = float(np.nanmedian(matrices.duration)) if count else 0.0
    return tuple(found for alike in comparable for found in _slow(matrices, alike, limits, step, count)), count


def _spread(matrices: Matrices, one: Communicator) -> bool:
    """Whether it leaves its host: transfers between hosts are compared with such."""
    return len({matrices.ranks[row].host for row in one.rows.tolist()}) > 1


def _slow(
    matrices: Matrices, alike: Sequence[Communicator], limits: LinkLimits, step: float, tries: int
) -> list[SlowLink]:
    values = np.stack([one.transfer for one in alike])
    typical = float(np.nanmedian(values))
    margin = max(limits.transfer * typical, limits.step * step)
    trials = tried(values, margin, margin)
    confidence = 1 - np.minimum(trials.steady * tries, 1.0)
    found = []
    for place in np.flatnonzero(confidence >= limits.confidence).tolist():
        one, excess = alike[place], trials.excess[place]
        low, high = median_interval(excess)
        here = float(np.nanmedian(values[place]))
        rows = one.rows.tolist()
        found.append(
            SlowLink(
                one.label, tuple(matrices.ranks[row].rank for row in rows),
                tuple(dict.fromkeys(matrices.ranks[row].host for row in rows)), float(confidence[place]),
                here, here - float(trials.median[place]), low, high, float(trials.median[place]) / step,
                float(np.median(one.bytes[one.last >= 0])), int(trials.above[place]), int(trials.steps[place]),
                len(alike) - 1,
            )
        )  # fmt: skip
    return found
