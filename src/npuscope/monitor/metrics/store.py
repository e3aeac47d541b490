"""The last measurements, in memory of a bounded size."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from npuscope.monitor.metrics.record import DAEMON, DEVICE, HOST, PROCESS, Record

DEPTH = 720
"""Values that are kept of each series."""
MOST_SERIES: Mapping[str, int] = {HOST: 1024, PROCESS: 2048, DEVICE: 1024, DAEMON: 64}
"""Series with a history, by entity: at full depth less than 50 MB for all. Further ones have a newest value only."""
MOST_RECORDS = 20_000
"""Things of which the newest record is kept."""
FADE_SECONDS = 3600.0
"""What has not been renewed for so long makes way, and is no longer shown as the newest."""
SWEEP_SECONDS = 5.0
NO_SERIES = frozenset({"timestamp", "min", "max"})
"""Numbers, but nothing to draw, or what percentiles draw better."""

Key = tuple[str, tuple[tuple[str, str], ...]]


class Ring:
    """The last values of one series and their times."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._times, self._values = array("d"), array("d")
        self._next = 0
        self.renewed = 0.0

    def append(self, moment: float, value: float) -> None:
        """Add a value; the oldest goes when there are too many."""
        if len(self._times) < self._depth:
            self._times.append(moment)
            self._values.append(value)
            return
        self._times[self._next], self._values[self._next] = moment, value
        self._next = (self._next + 1) % self._depth

    def lists(self) -> tuple[list[float], list[float]]:
        """Times and values, oldest first."""
        turn = self._next
        return tuple(list(part[turn:]) + list(part[:turn]) for part in (self._times, self._values))  # type: ignore[return-value]


class Store:
    """The newest record of everything, and the recent history of every number. Any thread may call it."""

    def __init__(
        self,
        depth: int = DEPTH,
        most_series: Mapping[str, int] = MOST_SERIES,
        fades: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._depth = depth
        self._most = most_series
        self._fades = fades or {}
        self._clock = clock
        self._lock = threading.Lock()
        self._latest: dict[Key, tuple[float, Record]] = {}
        self._series: dict[str, dict[tuple[Key, str], Ring]] = {entity: {} for entity in most_series}
        self._swept: dict[str, float] = {}
        self.refused = 0
        """Values and records for which there was no room."""

    def put(self, records: Iterable[Record]) -> None:
        """Take note of measurements."""
        for record in records:
            with self._lock:
                self._put(record)

    def _put(self, record: Record) -> None:
        now, key = self._clock(), record.key
        if key in self._latest or len(self._latest) < MOST_RECORDS or self._sweep_records(now):
            self._latest[key] = now, record
        else:
            self.refused += 1
        for name, value in record.values.items():
            if isinstance(value, int | float) and name not in NO_SERIES:
                self._append(key, name, record.time, float(value), now)

    def _append(self, key: Key, name: str, moment: float, value: float, now: float) -> None:
        entity = key[0]
        rings = self._series[entity]
        ring = rings.get((key, name))
        if ring is None:
            if len(rings) >= self._most[entity] and not self._sweep_series(entity, now):
                self.refused += 1
                return
            ring = rings[key, name] = Ring(self._depth)
        ring.append(moment, value)
        ring.renewed = now

    def _due(self, what: str, now: float) -> bool:
        """Whether it is time to look for what can go; a full store must not search for every value."""
        if now < self._swept.get(what, float("-inf")) + SWEEP_SECONDS:
            return False
        self._swept[what] = now
        return True

    def _sweep_records(self, now: float) -> bool:
        if self._due("records", now):
            for key in [key for key, (renewed, _) in self._latest.items() if self._faded(key[0], renewed, now)]:
                del self._latest[key]
        return len(self._latest) < MOST_RECORDS

    def _sweep_series(self, entity: str, now: float) -> bool:
        rings = self._series[entity]
        if self._due(entity, now):
            for key in [key for key, ring in rings.items() if self._faded(entity, ring.renewed, now)]:
                del rings[key]
        return len(rings) < self._most[entity]

    def _faded(self, entity: str, renewed: float, now: float) -> bool:
        return now - renewed > self._fades.get(entity, FADE_SECONDS)

    def latest(self) -> list[Record]:
        """The newest record of everything that is still measured."""
        with self._lock:
            known = list(self._latest.values())
        now = self._clock()
        return [record for renewed, record in known if not self._faded(record.entity, renewed, now)]

    def history(self) -> list[dict[str, Any]]:
        """Every series as {"name", "entity", "labels", "times", "values"}, oldest value first."""
        with self._lock:
            known = [(key, name, ring) for rings in self._series.values() for (key, name), ring in rings.items()]
        return [self._shown(key, name, ring) for key, name, ring in known]

    def _shown(self, key: Key, name: str, ring: Ring) -> dict[str, Any]:
        with self._lock:
            times, values = ring.lists()
        return {"name": name, "entity": key[0], "labels": dict(key[1]), "times": times, "values": values}
