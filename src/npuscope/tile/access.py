"""What programs touched and what they may not touch, as rows and faults of the trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npuscope.tile.overflow import Overflow
from npuscope.tile.region import Region
from npuscope.tile.storage import Argument
from npuscope.trace.footprint import Footprint, intern
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import INSTRUCTION_COLUMNS, OPCODES, Fault, Origin, Pipe, Role

MOST_SHOWN = 8
"""Programs and elements that a fault lists by number."""
NAMES = {Role.READ: "load", Role.WRITE: "store", Role.ATOMIC: "atomic"}


@dataclass(slots=True)
class Accesses:
    """Keeps the rows of the running batch of programs.

    `watched` are the storages (by id) that the kernel may write: only there can programs meet, so only there are
    accesses at explicit addresses worth their room; `keep_all` keeps them everywhere.
    """

    recorder: Recorder
    watched: frozenset[int] = frozenset()
    keep_all: bool = False
    first: int = 0
    count: int = 0
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict)

    def begin(self, first: int, count: int) -> None:
        """Rows from now on belong to the programs [first, first + count)."""
        self.first, self.count = first, count

    def region(
        self, site: int, role: Role, argument: Argument, region: Region, size: int, shape: tuple[int, ...],
        semantics: int = 0,
    ) -> None:  # fmt: skip
        """Note that every program touches its block of a region."""
        count = self.count
        footprints = _footprints(region, size, count)
        programs = np.arange(self.first, self.first + count)
        addresses = np.broadcast_to(region.first, (count,))
        if not region.full:
            alive = np.broadcast_to(region.alive, (count,))
            if not alive.all():
                programs, addresses = programs[alive], addresses[alive]
                footprints = footprints[alive] if isinstance(footprints, np.ndarray) else footprints
        if programs.size:
            self._rows(site, role, argument, programs, addresses, footprints, self._shape(shape), semantics)

    def lanes(
        self, site: int, role: Role, argument: Argument | None, address: np.ndarray, touched: np.ndarray, size: int,
        shape: tuple[int, ...], semantics: int = 0, name: str = "",
    ) -> np.ndarray:  # fmt: skip
        """Note that lanes touch `size` bytes at `address`; returns which of those that do may do so."""
        good = self._allowed(site, role, argument, address, touched, size, shape)
        if size > 1 and np.bitwise_and(address, size - 1).any():
            self._misaligned(site, role, argument, address, good, size)
        if argument is not None and (self.keep_all or id(argument.storage) in self.watched):
            self._explicit(site, role, argument, address, good, size, shape, semantics, name)
        return good

    def barrier(self, site: int) -> None:
        """Note that every program lets its own lanes meet."""
        self._instructions(site, "barrier", np.arange(self.first, self.first + self.count), 0, 0, 0)

    def note(self, code: str, site: int, lanes: np.ndarray, facts: dict[str, Any]) -> None:
        """Note a fault of some lanes, (programs or 1, ...)."""
        programs = self._programs(lanes)
        whole = {"lanes": int(lanes.sum()), "programs": programs[:MOST_SHOWN].tolist(), "among": int(programs.size)}
        core = int(programs[0]) if programs.size else -1
        self.recorder.add_fault(Fault(code, max(self.recorder.rows - 1, 0), core, site, whole | facts))

    # -- rows --------------------------------------------------------------------------------------------------

    def _instructions(self, site: int, name: str, programs: np.ndarray, shape: int, semantics: int, work: int) -> None:
        rows = np.zeros((len(INSTRUCTION_COLUMNS), programs.size), np.int64)
        rows[0] = programs
        rows[1] = Pipe.S
        rows[2] = OPCODES.number(name)
        rows[3] = site
        rows[4] = Origin.USER
        rows[5] = shape
        rows[8] = semantics
        rows[9] = work
        self.recorder.add_columns(rows)

    def _rows(
        self, site: int, role: Role, argument: Argument, programs: np.ndarray, addresses: np.ndarray, footprints: Any,
        shape: int, semantics: int, name: str = "",
    ) -> None:  # fmt: skip
        begin = self.recorder.rows
        self._instructions(site, name or NAMES[role], programs, shape, semantics, 0)
        rows = np.empty((5, programs.size), np.int64)
        rows[0] = np.arange(begin, begin + programs.size)
        rows[1] = role
        rows[2] = argument.number
        rows[3] = addresses
        rows[4] = footprints
        self.recorder.add_access_columns(rows)

    def _explicit(
        self, site: int, role: Role, argument: Argument, address: np.ndarray, good: np.ndarray, size: int,
        shape: tuple[int, ...], semantics: int, name: str,
    ) -> None:  # fmt: skip
        whole = np.broadcast_shapes(address.shape, good.shape)
        addresses = np.broadcast_to(address, whole).reshape(whole[0], -1)
        chosen = np.broadcast_to(good, whole).reshape(whole[0], -1)
        programs, starts, numbers = [], [], []
        for row in range(self.count):
            source = row if whole[0] > 1 else 0
            offsets = addresses[source][chosen[source]] - argument.address
            if offsets.size:
                programs.append(self.first + row)
                starts.append(argument.address)
                numbers.append(self.recorder.add_explicit(offsets, size))
        if programs:
            self._rows(
                site, role, argument, np.array(programs), np.array(starts), np.array(numbers), self._shape(shape),
                semantics, name,
            )  # fmt: skip

    def _shape(self, shape: tuple[int, ...]) -> int:
        return self._shapes.setdefault(shape, len(self._shapes) + 1)

    # -- faults ------------------------------------------------------------------------------------------------

    def _allowed(
        self, site: int, role: Role, argument: Argument | None, address: np.ndarray, touched: np.ndarray, size: int,
        shape: tuple[int, ...],
    ) -> np.ndarray:  # fmt: skip
        if argument is None:
            bad = touched
            good = np.zeros_like(touched)
        else:
            if not argument.gaps and address.min() >= argument.low and address.max() <= argument.high - size:
                return touched
            held = argument.holds(address, size)
            bad, good = touched & ~held, touched & held
        if bad.any():
            self._outside(site, role, argument, address, bad, size, shape)
        return good

    def _outside(
        self, site: int, role: Role, argument: Argument | None, address: np.ndarray, bad: np.ndarray, size: int,
        shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        lanes = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, address.shape))
        where = np.broadcast_to(address, lanes.shape)[lanes]
        first = int(where.min())
        facts: dict[str, Any] = {"role": int(role), "address": first, "size": size}
        if argument is not None:
            storage = argument.storage
            facts |= {
                "argument": argument.name,
                "buffer": argument.number,
                "first": argument.element(first),
                "last": argument.element(int(where.max())),
                "elements": int(np.unique(where).size),
                "stored": bool(first >= storage.address and int(where.max()) + size <= storage.end),
                "gap": bool(first >= argument.low and int(where.max()) + size <= argument.high),
            }
        note: Overflow | None = getattr(address, "note", None)
        if note is not None:
            facts["overflow"] = {
                "operation": note.operation, "site": note.site, "one": note.one, "other": note.other,
                "exact": note.exact, "wrapped": note.wrapped, "bits": note.bits,
            }  # fmt: skip
        facts["tile"] = list(shape)
        facts["lane"] = [int(index[0]) for index in np.nonzero(lanes)[1:]]
        self.note("tile_outside", site, lanes, facts)

    def _misaligned(
        self, site: int, role: Role, argument: Argument | None, address: np.ndarray, good: np.ndarray, size: int
    ) -> None:
        lanes = good & ((address & (size - 1)) != 0)
        if lanes.any():
            where = int(np.broadcast_to(address, lanes.shape)[lanes].min())
            name = argument.name if argument is not None else ""
            facts = {"role": int(role), "argument": name, "address": where, "size": size, "rest": where % size}
            self.note("tile_misaligned", site, lanes, facts)

    def _programs(self, lanes: np.ndarray) -> np.ndarray:
        """Numbers of the programs that have a true lane."""
        any_lane = lanes.reshape(lanes.shape[0], -1).any(axis=1)
        if lanes.shape[0] == 1 and any_lane[0]:
            return np.arange(self.first, self.first + self.count)
        return self.first + np.flatnonzero(any_lane)


def _footprints(region: Region, size: int, count: int) -> Any:
    """The number of the footprint of each program's block: one number where all are alike."""
    strides = region.strides
    varying = [extent for extent in region.extents if isinstance(extent, np.ndarray) and extent.size > 1]
    if not varying:
        return _footprint(tuple(int(np.asarray(extent).flat[0]) for extent in region.extents), strides, size)
    table = np.stack([np.broadcast_to(np.asarray(extent).reshape(-1), (count,)) for extent in region.extents])
    kinds, inverse = np.unique(table, axis=1, return_inverse=True)
    numbers = [_footprint(tuple(int(extent) for extent in kind), strides, size) for kind in kinds.T]
    return np.array(numbers)[inverse.reshape(-1)]


def _footprint(extents: tuple[int, ...], strides: tuple[int, ...], size: int) -> int:
    loops = [(count, stride) for count, stride in zip(extents, strides, strict=True) if stride and count > 1]
    if min(extents, default=1) <= 0:
        return intern(Footprint(0))
    while loops and loops[-1][1] == size:
        size *= loops.pop()[0]
    return intern(Footprint(size, tuple(loops)))
