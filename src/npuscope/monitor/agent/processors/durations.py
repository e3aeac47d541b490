"""How long the activities of one kind took, by device, without keeping them all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Batch, Column

MOST_KEPT = 1 << 20
"""Durations that are kept for the percentiles, of each device. Beyond that a random half is kept, then a quarter, and
so on: 2^19 of them say where 99 % lie to within 0.05 points."""
NO_DEVICE = -1
"""What the vendor's plug-in writes for calls on the host."""


@dataclass(frozen=True)
class Summary:
    """Of one interval; durations in nanoseconds."""

    total: int
    count: int
    shortest: int
    longest: int
    median: int
    p99: int


class Durations:
    """Those of one device since the last report."""

    def __init__(self, most_kept: int = MOST_KEPT, seed: int = 0) -> None:
        self._most = most_kept
        self._random = np.random.default_rng(seed)
        self._kept: list[Column] = []
        self._count_kept = self._halvings = 0
        self._total = self._count = self._longest = 0
        self._shortest = 2**63 - 1

    def add(self, durations: Column) -> None:
        """Take int64 durations, at least one."""
        longest, count = int(durations.max()), len(durations)
        # A record whose start never was set lasts since 1970; a few of them are more than 64 bits can hold.
        exact = longest * count < 2**63
        self._total += int(durations.sum()) if exact else sum(durations.tolist())
        self._count += count
        self._longest = max(self._longest, longest)
        self._shortest = min(self._shortest, int(durations.min()))
        self._keep(durations)

    def _keep(self, durations: Column) -> None:
        for _ in range(self._halvings):
            durations = self._half(durations)
        self._kept.append(durations)
        self._count_kept += len(durations)
        while self._count_kept > self._most:
            self._kept = [self._half(np.concatenate(self._kept))]
            self._count_kept = len(self._kept[0])
            self._halvings += 1

    def _half(self, durations: Column) -> Column:
        return durations[self._random.random(len(durations)) < 0.5]

    def summary(self) -> Summary:
        """What was added; percentiles by nearest rank."""
        kept = np.concatenate(self._kept)
        if not len(kept):  # a thinning may leave none when few may be kept
            kept = np.array([self._shortest, self._longest])
        ranks = [math.ceil(share * len(kept)) - 1 for share in (0.5, 0.99)]
        parted = np.partition(kept, ranks)
        median, p99 = (int(parted[rank]) for rank in ranks)
        return Summary(self._total, self._count, self._shortest, self._longest, median, p99)


class ByDevice:
    """The durations of one kind, of each device."""

    def __init__(self) -> None:
        self._devices: dict[int, Durations] = {}

    def add(self, batch: Batch) -> None:
        """Take records, at least one. Those that end before they start took no time."""
        took = np.maximum(batch["end"] - batch["start"], 0)
        for device, part in _parted(batch, took):
            if device not in self._devices:
                self._devices[device] = Durations()
            self._devices[device].add(part)

    def summaries(self) -> Iterator[tuple[int, Summary]]:
        """Device, -1 for the host, and what it did."""
        for device, durations in sorted(self._devices.items()):
            yield device, durations.summary()


def _parted(batch: Batch, took: Column) -> Iterator[tuple[int, Column]]:
    if "device" not in batch.columns:
        yield NO_DEVICE, took
        return
    devices = batch["device"]
    first = devices[0]
    if (devices == first).all():  # a process drives one device nearly always
        yield int(first), took
        return
    for device in np.unique(devices).tolist():
        yield device, took[devices == device]
