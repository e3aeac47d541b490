"""What one rank's file says, as columns, before it is reduced to steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npuscope.monitor.activity.batch import Column

NO_TIMES = np.zeros(0, np.int64)


class Unreadable(Exception):
    """A file that says nothing about its rank; the text says why."""


@dataclass(frozen=True)
class Ranges:
    """Ranges of time with a name: int64 nanoseconds of the rank's own clock, and numbers of texts."""

    start: Column = field(default_factory=lambda: NO_TIMES)
    end: Column = field(default_factory=lambda: NO_TIMES)
    name: Column = field(default_factory=lambda: NO_TIMES)

    def __len__(self) -> int:
        return len(self.start)

    def where(self, keep: Column) -> Ranges:
        """Those that `keep` (bool, or indices) says."""
        return Ranges(self.start[keep], self.end[keep], self.name[keep])


@dataclass(frozen=True)
class Collectives:
    """Collectives in the order of their start: times as in Ranges; `name` and `comm` are numbers of texts, `bytes` the
    size of what each rank gives, `launched` when the host called it (0 where that was not recorded)."""

    start: Column = field(default_factory=lambda: NO_TIMES)
    end: Column = field(default_factory=lambda: NO_TIMES)
    name: Column = field(default_factory=lambda: NO_TIMES)
    comm: Column = field(default_factory=lambda: NO_TIMES)
    bytes: Column = field(default_factory=lambda: NO_TIMES)
    launched: Column = field(default_factory=lambda: NO_TIMES)

    def __len__(self) -> int:
        return len(self.start)

    def where(self, keep: Column) -> Collectives:
        """Those that `keep` (bool, or indices) says."""
        columns = (self.start, self.end, self.name, self.comm, self.bytes, self.launched)
        return Collectives(*(column[keep] for column in columns))


@dataclass(frozen=True)
class Marked:
    """Steps that the program named: their numbers and their times, in the order of time; `source` says what named
    them, `on_device` whether the times are the device's or those of the host, which runs ahead."""

    label: Column
    start: Column
    end: Column
    source: str
    on_device: bool

    def __len__(self) -> int:
        return len(self.label)


NOT_MARKED = Marked(NO_TIMES, NO_TIMES, NO_TIMES, "", False)


@dataclass(frozen=True)
class Group:
    """What the process said about a communicator."""

    title: str
    ranks: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.ranks)


@dataclass
class Records:
    """One rank. `strings` are texts by number; `groups` are by the communicator's name; `notes` say what is missing."""

    rank: int
    pid: int
    path: str
    host: str = ""
    device: int = -1
    strings: Mapping[int, str] = field(default_factory=dict)
    kernels: Ranges = field(default_factory=Ranges)
    collectives: Collectives = field(default_factory=Collectives)
    steps: Marked = NOT_MARKED
    groups: Mapping[str, Group] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
