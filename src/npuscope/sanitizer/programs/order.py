"""What atomic operations order: a program that releases a place happens before one that acquires it later."""

from __future__ import annotations

import numpy as np

from npuscope.sanitizer.programs.rows import ACQUIRE, BOTH, RELEASE, Rows
from npuscope.trace.schema import Role


class AtomicOrder:
    """Tells whether one access of a launch comes before another of a different program for certain."""

    def __init__(self, rows: Rows) -> None:
        semantics = rows.semantics & 15
        chosen = np.flatnonzero((rows.role == Role.ATOMIC) & (semantics >= ACQUIRE))
        self._serial = rows.serial[chosen]
        self._program = rows.program[chosen].tolist()
        self._place = rows.address[chosen].tolist()
        self._footprint = rows.footprint[chosen].tolist()
        self._explicit = rows.batch.explicit
        self._acquires = np.isin(semantics[chosen], (ACQUIRE, BOTH)).tolist()
        self._releases = np.isin(semantics[chosen], (RELEASE, BOTH)).tolist()
        self._reached: dict[tuple[int, int], dict[int, int]] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing is ordered."""
        return not self._program

    def before(self, program: int, serial: int, other: int, later: int) -> bool:
        """Whether the access `serial` of `program` happens before the access `later` of program `other`."""
        if self.empty:
            return False
        reached = self._reached.get((program, serial))
        if reached is None:
            reached = self._reached[(program, serial)] = self._spread(program, serial)
        return reached.get(other, later) < later

    def _spread(self, program: int, serial: int) -> dict[int, int]:
        """From which of its rows on each program comes after the access."""
        reached = {program: serial}
        released: set[int] = set()
        for index in range(int(np.searchsorted(self._serial, serial)), len(self._program)):
            who = self._program[index]
            places = self._places(index)
            if self._acquires[index] and who not in reached and not released.isdisjoint(places):
                reached[who] = int(self._serial[index])
            if self._releases[index] and who in reached:
                released.update(places)
        return reached

    def _places(self, index: int) -> list[int]:
        footprint = self._footprint[index]
        if footprint >= 0:
            return [self._place[index]]
        found: list[int] = (self._place[index] + self._explicit[-footprint - 1].starts).tolist()
        return found
