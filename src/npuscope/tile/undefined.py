"""Whether it matters what memory without content holds.

A launch may read such memory and let the values go, as `tl.where(mask, tl.load(p), 0)` does. So that this is not
taken for a bug, a launch that has read some runs once more on copies of what it found, with other values in place of
those that nobody has written. Where the two runs write the same, nothing depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np

from npuscope.tile.access import Accesses
from npuscope.tile.machine import Machine
from npuscope.tile.overdue import Overdue
from npuscope.tile.pointer import Pointer
from npuscope.tile.run import run
from npuscope.tile.storage import Argument, Storage
from npuscope.tile.stuck import Stuck
from npuscope.trace.recorder import Recorder

SECONDS = 10.0
"""What the second run may take."""
SMALL = 0x3F
"""Bits of the bytes that stand in: floats of any size come out finite, and below 2."""


@dataclass(slots=True)
class Twin:
    """A copy of a storage for the second run, and what was filled in where nothing had been written."""

    real: Storage
    copy: Storage
    undefined: np.ndarray | None = None
    filling: np.ndarray | None = None

    def differs(self) -> bool:
        """Whether the runs have left different bytes; what neither has written does not count."""
        one, other = self.real.data, self.copy.data
        if one is None or other is None:
            return False
        different = one != other
        if self.undefined is not None and self.filling is not None:
            different &= ~(self.undefined & (other == self.filling))
        return bool(different.any())


@dataclass(slots=True)
class Repeat:
    """A launch that can be run again."""

    grid: tuple[int, int, int]
    entry: Callable[..., Any]
    bound: Sequence[Any]
    arguments: Sequence[Argument]
    largest: int
    yields: bool
    parts: Sequence[range]
    _twins: dict[int, Twin] = field(default_factory=dict)

    def depends(self, machine: Machine) -> bool:
        """Whether the results of a launch, that has run on `machine`, depend on undefined values; also when that cannot
        be found out."""
        before = machine.before
        if before is None or not before.complete:
            return True
        for argument in self.arguments:
            self._twin(argument.storage, before.kept.get(id(argument.storage)))
        for argument in self.arguments:
            self._fill(argument)
        clones = {id(argument): self._clone(argument) for argument in self.arguments}
        again = Machine(self.grid, list(clones.values()), Accesses(Recorder()))
        again.deadline = monotonic() + SECONDS
        try:
            run(
                again,
                self.entry,
                [_moved(value, clones) for value in self.bound],
                self.largest,
                self.yields,
                self.parts,
            )
        except (Overdue, Stuck, ArithmeticError, ValueError, IndexError):
            return True
        return any(twin.differs() for twin in self._twins.values())

    def _twin(self, storage: Storage, kept: np.ndarray | None) -> None:
        if id(storage) in self._twins:
            return
        data = storage.data if kept is None else kept
        undefined = any(argument.undefined for argument in self.arguments if argument.storage is storage)
        if data is not None and kept is None:
            data = data.copy() if undefined else data.view()
            data.flags.writeable = undefined  # the user's own memory is written once only
        self._twins[id(storage)] = Twin(storage, Storage(storage.address, storage.size, data))

    def _fill(self, argument: Argument) -> None:
        twin = self._twins[id(argument.storage)]
        data = twin.copy.data
        if not argument.undefined or data is None:
            return
        if twin.undefined is None or twin.filling is None:
            twin.undefined = np.zeros(data.size, np.bool_)
            twin.filling = np.random.default_rng(argument.number).integers(1, SMALL, data.size, np.uint8)
        offset = argument.low - argument.storage.address
        for start, end in argument.undefined:
            twin.undefined[offset + start : offset + end] = True
        np.copyto(data, twin.filling, where=twin.undefined)

    def _clone(self, argument: Argument) -> Argument:
        return replace(argument, storage=self._twins[id(argument.storage)].copy)


def _moved(value: Any, clones: dict[int, Argument]) -> Any:
    if isinstance(value, Pointer) and value.argument is not None:
        return Pointer(clones[id(value.argument)], value.address)
    return value
