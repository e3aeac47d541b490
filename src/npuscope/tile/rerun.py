"""Runs one program of a launch again, to find out which loaded number made an address what it is.

Nothing is written and nothing recorded. Each number that the program loads is changed a little in turn; where the
address changes with it, the address comes from there, whatever was computed in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from npuscope.tile.access import Accesses
from npuscope.tile.affine import Affine
from npuscope.tile.machine import Machine
from npuscope.tile.overdue import Overdue
from npuscope.tile.pointer import Pointer
from npuscope.tile.ready import Ready
from npuscope.tile.shapes import whole
from npuscope.tile.storage import Argument
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import Role

SECONDS = 2.0
"""What the search for one origin may take."""
MOST_LOADS = 24
"""Loads of whole numbers that are tried, the last one before the access first."""
CHANGES = (1, 64)
"""By how much numbers are changed."""


class Reached(Exception):
    """The access that is looked for has been made."""


@dataclass(slots=True)
class Loaded:
    """A load of whole numbers: where, what was read, and the addresses that were."""

    site: int
    shape: tuple[int, ...]
    argument: Argument
    address: np.ndarray
    values: np.ndarray


@dataclass(slots=True)
class Rerun(Accesses):
    """One run: stands in for what keeps accesses, and waits for the first one of `target` that leaves its tensor.

    `change` says what to add to which load's numbers: (number of the load, lanes, by how much).
    """

    target: int = 0
    role: Role = Role.READ
    change: tuple[int, np.ndarray, int] | None = None
    loads: list[Loaded] = field(default_factory=list)
    found: np.ndarray | None = None  # the addresses of the access
    bad: np.ndarray | None = None  # its lanes outside

    def region(self, site: int, role: Role, *others: Any) -> None:
        """Accesses in a row never leave their tensor."""

    def barrier(self, site: int) -> None:
        """Nobody waits."""

    def mark(self, bits: np.ndarray) -> None:
        """Nothing is kept."""

    def note(self, *words: Any) -> None:
        """Other faults have been told."""

    def lanes(
        self, site: int, role: Role, argument: Argument | None, place: tuple[Affine | np.ndarray, np.ndarray],
        touched: np.ndarray, *others: Any,
    ) -> np.ndarray:  # fmt: skip
        """Which lanes may touch memory; raises Reached at the access that is looked for."""
        address, size = place[1], others[0]
        good = touched & argument.holds(address, size) if argument is not None else np.zeros_like(touched)
        bad = touched & ~good
        if site == self.target and role is self.role and bad.any():
            self.found = np.array(address)
            self.bad = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, address.shape))
            raise Reached
        return good


class Reader(Machine):
    """A machine that reads only."""

    rerun: Rerun

    def load(self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], *others: Any) -> np.ndarray:
        """As ever; whole numbers are remembered, or changed when it is their turn."""
        result = super().load(site, dtype, shape, *others)
        pointer: Pointer = others[1]
        if dtype.kind != "i" or pointer.argument is None:
            return result
        rerun = self.rerun
        number = len(rerun.loads)
        address = pointer.address.wide() if isinstance(pointer.address, Affine) else pointer.address
        values = np.array(whole(shape, result))
        rerun.loads.append(Loaded(site, shape, pointer.argument, address, values))
        if rerun.change is None or rerun.change[0] != number:
            return result
        _, lanes, step = rerun.change
        return np.where(lanes, values + dtype.type(step), values)

    def store(self, site: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, *others: Any) -> None:
        """Look at the addresses only."""
        self._look(site, Role.WRITE, dtype, shape, pointer, others[1] if len(others) > 1 else None)

    def _exchange(
        self, site: int, name: str, semantics: int, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer,
        mask: Any, change: Any,
    ) -> np.ndarray:  # fmt: skip
        """Read what is there."""
        self._look(site, Role.ATOMIC, dtype, shape, pointer, mask)
        return super().load(site, dtype, shape, False, pointer, mask)

    def _look(
        self, site: int, role: Role, dtype: np.dtype[Any], shape: tuple[int, ...], pointer: Pointer, mask: Any
    ) -> None:
        address, touched = self.lanes(pointer, mask)
        for argument, part in self._owners(pointer, address, touched):
            self.accesses.lanes(site, role, argument, (address, address), part, dtype.itemsize, shape)


@dataclass(slots=True)
class Search:
    """Looks for the origin of an address in one program of a launch."""

    launch: Ready
    end: float = 0.0

    def origin(self, program: int, site: int, role: Role) -> dict[str, Any] | None:
        """Which element of which argument made the first address that the access at `site` has outside its tensor."""
        self.end = monotonic() + SECONDS
        first = self._run(program, site, role, None)
        if first is None or first.found is None or first.bad is None:
            return None
        lane = tuple(int(place[0]) for place in np.nonzero(first.bad))
        for number in reversed(range(len(first.loads))[-MOST_LOADS:]):
            loaded = first.loads[number]
            for step in CHANGES:
                moves = partial(self._moves, program, site, role, first, lane, number, step)
                if moves(np.ones(loaded.values.shape, np.bool_)):
                    return _described(loaded, _narrowed(loaded.values.shape, moves))
        return None

    def _moves(
        self, program: int, site: int, role: Role, first: Rerun, lane: tuple[int, ...], number: int, step: int,
        lanes: np.ndarray,
    ) -> bool:  # fmt: skip
        """Whether the address in a lane changes with lanes of a load."""
        again = self._run(program, site, role, (number, lanes, step))
        return again is not None and _at(again, lane) != _at(first, lane)

    def _run(
        self, program: int, site: int, role: Role, change: tuple[int, np.ndarray, int] | None
    ) -> Rerun | None:
        """The run up to the access, which it may not come to; None when time is up."""
        rerun = Rerun(Recorder(), target=site, role=role, change=change)
        machine = Reader(self.launch.grid, self.launch.arguments, rerun)
        machine.rerun = rerun
        try:
            self.launch.run_alone(machine, program, self.end)
        except Reached:
            pass
        except (Overdue, ArithmeticError, ValueError, IndexError):
            return rerun if change is not None and monotonic() < self.end else None
        return rerun


def _at(rerun: Rerun, lane: tuple[int, ...]) -> int | None:
    """The address in a lane, None when the access was not made or lies inside."""
    if rerun.found is None:
        return None
    place = tuple(0 if count == 1 else index for index, count in zip(lane, rerun.found.shape, strict=True))
    return int(rerun.found[place])


def _narrowed(shape: tuple[int, ...], moves: Callable[[np.ndarray], bool]) -> int:
    """One lane of a load whose change alone moves the address, by halves."""
    low, high = 0, int(np.prod(shape))
    while high - low > 1:
        middle = (low + high) // 2
        lanes = np.zeros(int(np.prod(shape)), np.bool_)
        lanes[low:middle] = True
        if moves(lanes.reshape(shape)):
            high = middle
        else:
            low = middle
    return low


def _described(loaded: Loaded, lane: int) -> dict[str, Any]:
    values = loaded.values
    address = np.broadcast_to(loaded.address, values.shape).reshape(-1)
    argument = loaded.argument
    where = int(address[lane])
    return {
        "buffer": argument.number, "element": argument.element(where), "value": int(values.reshape(-1)[lane]),
        "site": loaded.site, "outside": not bool(argument.holds(address[lane : lane + 1], values.dtype.itemsize)[0]),
    }  # fmt: skip
