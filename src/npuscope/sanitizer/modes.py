"""One cross-core flag used in two modes: allowed only when every set of the first has been waited for (hardware.md
3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from npuscope.sanitizer.partners import Part, raised_by
from npuscope.sanitizer.tally import rows_of
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, CoreInfo, Origin

OWN_COUNTERS = 4
"""The mode whose flags have counters of their own."""
CORE, NUMBER, MODE, SITE, IS_WAIT = range(5)


@dataclass(frozen=True, slots=True)
class Mixed:
    """A counter of `core` that rises in `mode` (by the set on line `site`) while it still holds a set of another
    (`before`: its mode and line)."""

    core: int
    number: int
    mode: int
    site: int
    before: tuple[int, int]


class Modes:
    """The program's cross-core sets and waits in one launch, in order."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def add(self, batch: Batch) -> None:
        """Take in the rows of a batch."""
        rows = rows_of(batch, ("cross_core_set", "cross_core_wait")) & (batch.column("origin") == Origin.USER)
        if rows.any():
            columns = [batch.column(name)[rows] for name in ("core", "a", "b", "site")]
            wait = batch.column("opcode")[rows] == OPCODES.number("cross_core_wait")
            self._parts.append(np.stack([*columns, wait]))

    def mixed(self, cores: Sequence[CoreInfo]) -> Iterator[Mixed]:
        """Every rise of a counter that still holds a set of another mode."""
        if not self._parts:
            return
        rows = np.concatenate(self._parts, axis=1)
        rows = rows[:, rows[MODE] != OWN_COUNTERS]
        for number in np.unique(rows[NUMBER]).tolist():
            chosen = rows[:, rows[NUMBER] == number]
            if np.unique(chosen[MODE, chosen[IS_WAIT] == 0]).size > 1:
                yield from _Counters(cores, number).run(chosen)


@dataclass(slots=True)
class _Counters:
    """The counters of one flag on all cores."""

    cores: Sequence[CoreInfo]
    number: int
    held: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # by core: mode and line of each set
    sets: dict[tuple[Part, int], int] = field(default_factory=dict)
    raised: dict[tuple[Part, int], int] = field(default_factory=dict)
    reached: dict[tuple[int, int], list[tuple[int, Part]]] = field(default_factory=dict)

    def run(self, rows: np.ndarray) -> Iterator[Mixed]:
        """Follow the rows (core, number, mode, line, whether it is a wait)."""
        for core, _, mode, site, is_wait in rows.T.tolist():
            if is_wait:
                if self.held.get(core):
                    self.held[core].pop(0)
                continue
            for part in {part for _, part in self._reached(core, mode)}:
                self.sets[part, core] = self.sets.get((part, core), 0) + 1
            for receiver, part in self._reached(core, mode):
                count = min(self.sets.get((part, sender), 0) for sender in part.senders)
                if count > self.raised.get((part, receiver), 0):
                    self.raised[part, receiver] = count
                    held = self.held.setdefault(receiver, [])
                    other = next((one for one in held if one[0] != mode), None)
                    if other is not None:
                        yield Mixed(receiver, self.number, mode, site, other)
                    held.append((mode, site))

    def _reached(self, core: int, mode: int) -> list[tuple[int, Part]]:
        """The cores whose counter a set of `core` helps to raise."""
        known = self.reached.get((core, mode))
        if known is None:
            receivers = range(len(self.cores))
            parts = ((receiver, raised_by(self.cores, receiver, mode, self.number)) for receiver in receivers)
            known = [(receiver, part) for receiver, part in parts if part is not None and core in part.senders]
            self.reached[core, mode] = known
        return known
