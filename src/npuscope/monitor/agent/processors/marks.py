"""Marker records as ranges that have been completed on the host and, where asked for, on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Flag, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.processors.ranges import Ranges, of_side

MOST_WAITING = 1 << 16
"""Ranges of one side that wait for the other; older ones are given up."""
MOST_RECORDS = 1 << 20
"""Records between two reports, some 64 MB; further ones are lost."""
HOST = 2**32 - 1
"""How the vendor's plug-in writes, for markers, that no device is meant."""
DEFAULT_DOMAIN = "default"


@dataclass(frozen=True)
class Span:
    """A side of a range. Times in nanoseconds."""

    device: int
    start: int
    end: int
    name: str
    domain: str


@dataclass(frozen=True)
class _Host:
    start: int
    end: int
    name: str
    domain: str


class Marks:
    """Records wait here for the next report. For one thread at a time.

    A range that was to be marked on the device too counts when all its four records are there, as with the vendor's
    plug-in. A range of the host alone never has a device's half to wait for, so that its own two records complete it:
    the plug-in would never report it.
    """

    def __init__(self, strings: Strings) -> None:
        self.lost = 0
        """Records beyond what may wait."""
        self._strings = strings
        self._new: list[Batch] = []
        self._count = 0
        self._ranges = {Side.HOST: Ranges(), Side.DEVICE: Ranges()}
        self._hosts: dict[int, _Host] = {}
        self._devices: dict[int, tuple[int, int, int]] = {}
        self._given_up = 0

    @property
    def halves(self) -> int:
        """Ranges that were given up or still lack something."""
        open_ = self._ranges[Side.HOST]
        return self._given_up + open_.given_up + open_.open + len(self._hosts)

    @property
    def given_up(self) -> int:
        """Ranges that were given up because too many lacked something."""
        return self._given_up + self._ranges[Side.HOST].given_up

    def add(self, batch: Batch) -> None:
        """Take records."""
        if self._count + len(batch) > MOST_RECORDS:
            self.lost += len(batch)
            return
        self._new.append(batch)
        self._count += len(batch)

    def spans(self) -> Iterator[Span]:
        """The sides of all ranges that have become complete, the host's before the device's."""
        if not self._new:
            return
        every = joined(self._new)
        self._new, self._count = [], 0
        starts, ends = self._ranges[Side.DEVICE].pair(of_side(every, Side.DEVICE))
        for number, *span in _rows(starts["id"], starts["device"], starts["time"], ends["time"]):
            self._devices[number] = (span[0], span[1], span[2])
        yield from self._of_host(*self._ranges[Side.HOST].pair(of_side(every, Side.HOST)))
        self._shorten()

    def _of_host(self, starts: Batch, ends: Batch) -> Iterator[Span]:
        texts = self._strings.texts
        columns = starts["id"], starts["flag"], starts["time"], ends["time"], starts["name"], starts["domain"]
        for number, flag, start, end, name, domain in _rows(*columns):
            host = _Host(start, end, texts[name], texts[domain] or DEFAULT_DOMAIN)
            if flag & Flag.START_WITH_DEVICE:
                self._hosts[number] = host
            else:
                yield Span(HOST, start, end, host.name, host.domain)
        for number in [number for number in self._hosts if number in self._devices]:
            host = self._hosts.pop(number)
            device, start, end = self._devices.pop(number)
            yield Span(HOST, host.start, host.end, host.name, host.domain)
            yield Span(device, start, end, host.name, host.domain)

    def _shorten(self) -> None:
        """Forget the oldest of what waits; a device's side alone is what a filter leaves of a range."""
        while len(self._hosts) > MOST_WAITING:
            del self._hosts[next(iter(self._hosts))]
            self._given_up += 1
        while len(self._devices) > MOST_WAITING:
            del self._devices[next(iter(self._devices))]


def _rows(*columns: np.ndarray) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)
