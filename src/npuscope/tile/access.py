"""What programs touched and what they may not touch, as rows and faults of the trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from npuscope.tile.affine import Affine
from npuscope.tile.moves import moves
from npuscope.tile.overflow import Wrapped, facts_of, plain
from npuscope.tile.region import Region
from npuscope.tile.storage import Argument
from npuscope.trace.footprint import Footprint, intern
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import INSTRUCTION_COLUMNS, OPCODES, TURN, Fault, Origin, Pipe, Role

MOST_RUNS = 64
"""Stretches of program numbers that a fault lists."""
MOST_ALIKE = 64
"""Faults of one line that are kept with their particulars; of the rest only the number is."""
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
    reads: Any = None  # takes reads of memory that had no content (npuscope.tile.matter)
    first: int = 0
    count: int = 0
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    _kept: dict[tuple[str, int], list[Fault]] = field(default_factory=dict)
    _last: np.ndarray | None = None
    _turn: int = 0

    def begin(self, first: int, count: int) -> None:
        """Rows from now on belong to the programs [first, first + count)."""
        self.first, self.count = first, count
        self._turn ^= TURN

    def region(
        self, site: int, role: Role, argument: Argument, region: Region, size: int, shape: tuple[int, ...],
        address: Affine, semantics: int = 0,
    ) -> None:  # fmt: skip
        """Note that every program touches its block of a region of the tile at `address`."""
        self._last = None
        count = self.count
        footprints = _footprints(region, size, count)
        programs = np.arange(self.first, self.first + count)
        starts = np.broadcast_to(region.first, (count,))
        lanes = self._lane_map(address)
        if not region.full:
            alive = np.broadcast_to(region.alive, (count,))
            if not alive.all():
                programs, starts = programs[alive], starts[alive]
                footprints = footprints[alive] if np.ndim(footprints) else footprints
                lanes = (lanes[0][alive] if np.ndim(lanes[0]) else lanes[0], lanes[1])
        if programs.size:
            self._rows(site, role, argument, programs, starts, footprints, (self._shape(shape), *lanes, semantics))
            if role is Role.READ and self.reads is not None and id(argument) in self.reads.hollow:
                these = programs - self.first
                low, high = (np.broadcast_to(bound, (count,))[these] for bound in (region.low, region.high))
                self.reads.note(site, argument, programs, low, high)

    def lanes(
        self, site: int, role: Role, argument: Argument | None, place: tuple[Affine | np.ndarray, np.ndarray],
        touched: np.ndarray, size: int, shape: tuple[int, ...], semantics: int = 0, name: str = "",
    ) -> np.ndarray:  # fmt: skip
        """Note that lanes touch `size` bytes; returns which of those that do may do so.

        `place` are the addresses as the kernel has them, and as an array.
        """
        self._last = None
        address = place[1]
        good = self._allowed(site, role, argument, address, touched, size, shape)
        if size > 1 and np.bitwise_and(address, size - 1).any():
            self._misaligned(site, role, argument, address, good, size, shape)
        if type(address) is Wrapped and argument is not None:
            self._elsewhere(site, role, argument, address, good, shape)
        if role is Role.READ and argument is not None and self.reads is not None and id(argument) in self.reads.hollow:
            self._hollow(site, argument, address, good, size)
        if argument is not None and (self.keep_all or id(argument.storage) in self.watched):
            self._explicit(site, role, argument, place, good, size, shape, semantics, name)
        return good

    def _hollow(self, site: int, argument: Argument, address: np.ndarray, good: np.ndarray, size: int) -> None:
        from npuscope.tile.matter import bounds

        programs, low, high = bounds(plain(address), good, size)
        if max(address.shape[0], good.shape[0]) == 1 and programs.size:
            programs = np.arange(self.count)
        self.reads.note(site, argument, self.first + programs, low, high)

    def mark(self, bits: np.ndarray) -> None:
        """Add bits, one number for each program, to the operand d of what was noted last."""
        if self._last is not None:
            self._last[8] |= bits[self._last[0] - self.first]

    def barrier(self, site: int) -> None:
        """Note that every program lets its own lanes meet."""
        self._instructions(site, "barrier", np.arange(self.first, self.first + self.count), (0, 0, 0, 0))

    def note(self, code: str, site: int, lanes: np.ndarray, facts: dict[str, Any], shape: tuple[int, ...] = ()) -> None:
        """Note a fault of some lanes of a tile, (programs or 1, ...)."""
        programs = self._programs(lanes)
        kept = self._kept.setdefault((code, site), [])
        if len(kept) >= MOST_ALIKE:
            known = kept[-1].facts
            assert isinstance(known, dict)
            known["more"] = known.get("more", 0) + int(programs.size)
            return
        whole: dict[str, Any] = {
            "lanes": int(lanes.sum()), "programs": stretches(programs)[:MOST_RUNS], "among": int(programs.size),
            "tile": list(shape),
        }  # fmt: skip
        if shape and programs.size:
            row = 0 if lanes.shape[0] == 1 else int(programs[0]) - self.first
            whole["from"], whole["to"] = lane_box(lanes[row], shape)
        core = int(programs[0]) if programs.size else -1
        kept.append(Fault(code, max(self.recorder.rows - 1, 0), core, site, whole | facts))
        self.recorder.add_fault(kept[-1])

    # -- rows --------------------------------------------------------------------------------------------------

    def _instructions(self, site: int, name: str, programs: np.ndarray, operands: tuple[Any, Any, Any, Any]) -> None:
        rows = np.zeros((len(INSTRUCTION_COLUMNS), programs.size), np.int64)
        rows[0] = programs
        rows[1] = Pipe.S
        rows[2] = OPCODES.number(name)
        rows[3] = site
        rows[4] = Origin.USER
        rows[5], rows[6], rows[7], rows[8] = operands
        rows[8] |= self._turn
        self.recorder.add_columns(rows)
        self._last = rows

    def _rows(
        self, site: int, role: Role, argument: Argument, programs: np.ndarray, addresses: np.ndarray, footprints: Any,
        operands: tuple[Any, Any, Any, Any], name: str = "",
    ) -> None:  # fmt: skip
        begin = self.recorder.rows
        self._instructions(site, name or NAMES[role], programs, operands)
        rows = np.empty((5, programs.size), np.int64)
        rows[0] = np.arange(begin, begin + programs.size)
        rows[1] = role
        rows[2] = argument.number
        rows[3] = addresses
        rows[4] = footprints
        self.recorder.add_access_columns(rows)

    def _explicit(
        self, site: int, role: Role, argument: Argument, place: tuple[Affine | np.ndarray, np.ndarray],
        good: np.ndarray, size: int, shape: tuple[int, ...], semantics: int, name: str,
    ) -> None:  # fmt: skip
        address = place[1]
        whole = np.broadcast_shapes(address.shape, good.shape)
        addresses = np.broadcast_to(address, whole).reshape(whole[0], -1)
        chosen = np.broadcast_to(good, whole).reshape(whole[0], -1)
        rows, numbers = [], []
        for row in range(self.count):
            source = row if whole[0] > 1 else 0
            offsets = addresses[source][chosen[source]] - argument.address
            if offsets.size:
                rows.append(row)
                numbers.append(self.recorder.add_explicit(offsets, size))
        if rows:
            these = np.array(rows)
            base, kind = self._lane_map(place[0])
            base = base[these] if np.ndim(base) and np.size(base) > 1 else base
            starts = np.full(these.size, argument.address)
            operands = (self._shape(shape), base, kind, semantics)
            self._rows(site, role, argument, these + self.first, starts, np.array(numbers), operands, name)

    def _lane_map(self, address: Affine | np.ndarray) -> tuple[Any, int]:
        """What tells which lane touches what: a number for each program, and one for all."""
        if isinstance(address, Affine):
            return address.base, self._shape(address.strides)
        return 0, -1 - crc32(np.ascontiguousarray(address).tobytes())

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
            for part in _by_cause(address, bad):
                self._outside(site, role, argument, address, part, size, shape)
        return good

    def _outside(
        self, site: int, role: Role, argument: Argument | None, address: np.ndarray, bad: np.ndarray, size: int,
        shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        lanes = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, address.shape))
        where = np.broadcast_to(address, lanes.shape)[lanes]
        facts: dict[str, Any] = {"role": int(role), "address": int(where.min()), "size": size}
        if argument is not None:
            facts |= _where(argument, where, size)
            if facts["gap"]:
                facts["moves"] = moves(address, bad, argument.dtype.itemsize)
        if type(address) is Wrapped:
            facts |= facts_of(address, lanes)
        self.note("tile_outside", site, lanes, facts, shape)

    def left_out(
        self, site: int, role: Role, argument: Argument, address: np.ndarray, lanes: np.ndarray, shape: tuple[int, ...]
    ) -> None:
        """Note lanes outside an argument that nothing is to touch, those before it and those behind it apart."""
        lanes, address = np.broadcast_arrays(lanes, address)
        for side in (address < argument.low, address >= argument.low):
            chosen = lanes & side
            if chosen.any():
                first = argument.element(int(address[chosen].flat[0]))
                facts = {
                    "role": int(role), "argument": argument.name, "buffer": argument.number, "first": first,
                    "last": first,
                }  # fmt: skip
                self.note("tile_masked", site, chosen, facts, shape)

    def _elsewhere(
        self, site: int, role: Role, argument: Argument, address: Wrapped, good: np.ndarray, shape: tuple[int, ...]
    ) -> None:
        """Note lanes that an overflow has brought to another element of the right tensor."""
        if address.exact is None:
            return
        lanes = (address.exact != plain(address)) & good
        if lanes.any():
            where, meant = (np.broadcast_to(part, lanes.shape)[lanes] for part in (plain(address), address.exact))
            facts = {
                "role": int(role), "argument": argument.name, "buffer": argument.number, "address": int(where[0]),
                "first": argument.element(int(where[0])), "meant": argument.element(int(meant[0])),
            }  # fmt: skip
            self.note("tile_overflow", site, lanes, facts | facts_of(address, lanes), shape)

    def _misaligned(
        self, site: int, role: Role, argument: Argument | None, address: np.ndarray, good: np.ndarray, size: int,
        shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        lanes = good & ((address & (size - 1)) != 0)
        if lanes.any():
            where = int(np.broadcast_to(address, lanes.shape)[lanes].min())
            name = argument.name if argument is not None else ""
            facts = {"role": int(role), "argument": name, "address": where, "size": size, "rest": where % size}
            self.note("tile_misaligned", site, lanes, facts, shape)

    def _programs(self, lanes: np.ndarray) -> np.ndarray:
        """Numbers of the programs that have a true lane."""
        any_lane = lanes.reshape(lanes.shape[0], -1).any(axis=1)
        if lanes.shape[0] == 1 and any_lane[0]:
            return np.arange(self.first, self.first + self.count)
        return self.first + np.flatnonzero(any_lane)


def stretches(numbers: np.ndarray) -> list[list[int]]:
    """Sorted numbers as stretches [first, last] of neighbours."""
    if not numbers.size:
        return []
    cuts = np.flatnonzero(np.diff(numbers) != 1)
    firsts, lasts = numbers[np.r_[0, cuts + 1]], numbers[np.r_[cuts, numbers.size - 1]]
    return np.stack((firsts, lasts), axis=1).tolist()


def lane_box(lanes: np.ndarray, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The first and the last index along each axis of a program's true lanes; an axis of length 1 stands for all."""
    low, high = [], []
    for axis, count in enumerate(shape):
        others = tuple(other for other in range(lanes.ndim) if other != axis)
        places = np.flatnonzero(lanes.any(axis=others))
        everywhere = lanes.shape[axis] == 1
        low.append(0 if everywhere else int(places[0]))
        high.append(count - 1 if everywhere else int(places[-1]))
    return low, high


def _by_cause(address: np.ndarray, bad: np.ndarray) -> list[np.ndarray]:
    """Lanes that are wrong by themselves, and those that an overflow has led astray."""
    if type(address) is not Wrapped or address.exact is None:
        return [bad]
    astray = bad & (address.exact != plain(address))
    return [part for part in (bad & ~astray, astray) if part.any()]


def _where(argument: Argument, where: np.ndarray, size: int) -> dict[str, Any]:
    """Which elements of an argument addresses outside it would be."""
    first, last = int(where.min()), int(where.max())
    storage = argument.storage
    return {
        "argument": argument.name,
        "buffer": argument.number,
        "first": argument.element(first),
        "last": argument.element(last),
        "elements": int(np.unique(where).size),
        "stored": bool(first >= storage.address and last + size <= storage.end),
        "gap": bool(first >= argument.low and last + size <= argument.high),
    }


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
