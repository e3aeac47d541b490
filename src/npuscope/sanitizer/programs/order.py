"""What atomic operations order: a program that releases a place happens before one that acquires it later."""

from __future__ import annotations

import numpy as np

from npuscope.sanitizer.programs.rows import ACQUIRE, BOTH, RELEASE, Rows, TooMany
from npuscope.trace.schema import Role

MOST_STEPS = 1 << 29
"""Places of atomic operations times programs to be followed; beyond that it takes too long."""
NEVER = -1


class AtomicOrder:
    """Tells whether accesses of a launch come before others, of different programs, for certain."""

    def __init__(self, rows: Rows) -> None:
        semantics = rows.semantics & 15
        self._rows = rows
        self._chosen = np.flatnonzero((rows.role == Role.ATOMIC) & (semantics >= ACQUIRE))
        self._acquires = np.isin(semantics[self._chosen], (ACQUIRE, BOTH))
        self._releases = np.isin(semantics[self._chosen], (RELEASE, BOTH))

    @property
    def empty(self) -> bool:
        """Whether nothing is ordered."""
        return not self._chosen.size

    def ordered(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """For pairs of rows, whether the first happens before the second. Raises TooMany when that takes too long.

        Every atomic operation is gone through once, in order. `seen[q]` holds for each program whose accesses are asked
        about the last of its releases that q has acquired: what it did before that release lies behind q.
        """
        rows = self._rows
        sources, number = np.unique(rows.program[earlier], return_inverse=True)
        index = {program: place for place, program in enumerate(sources.tolist())}
        places = [self._places(row) for row in self._chosen.tolist()]
        if sum(map(len, places)) * max(sources.size, 1) > MOST_STEPS:
            raise TooMany
        asked = np.argsort(rows.serial[later], kind="stable")
        waiting = iter(asked.tolist())
        result = np.zeros(earlier.size, np.bool_)
        seen: dict[int, np.ndarray] = {}
        released: dict[int, np.ndarray] = {}

        def answer(pair: int) -> None:
            known = seen.get(int(rows.program[later[pair]]))
            result[pair] = known is not None and known[number[pair]] >= rows.serial[earlier[pair]]

        pair = next(waiting, None)
        for turn, row in enumerate(self._chosen.tolist()):
            serial, program = int(rows.serial[row]), int(rows.program[row])
            while pair is not None and rows.serial[later[pair]] <= serial:
                answer(pair)
                pair = next(waiting, None)
            if pair is None:
                break
            mine = seen.get(program)
            if mine is None:
                mine = seen[program] = np.full(sources.size, NEVER)
            if self._acquires[turn]:
                for place in places[turn]:
                    if place in released:
                        np.maximum(mine, released[place], out=mine)
            if self._releases[turn]:
                if program in index:
                    mine[index[program]] = serial
                for place in places[turn]:
                    known = released.get(place)
                    released[place] = mine.copy() if known is None else np.maximum(known, mine)
        while pair is not None:
            answer(pair)
            pair = next(waiting, None)
        return result

    def _places(self, row: int) -> list[int]:
        rows = self._rows
        footprint, address = int(rows.footprint[row]), int(rows.address[row])
        if footprint >= 0:
            return [address]
        found: list[int] = (address + rows.batch.explicit[-footprint - 1].starts).tolist()
        return found
