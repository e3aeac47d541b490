"""The memory operations of one launch of programs, and the bytes that they touch as intervals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import INSTRUCTION_COLUMNS, OPCODES, TURN, Buffer, Role

MOST_INTERVALS = 20_000_000
"""More are not compared; the check says so."""
ACQUIRE, RELEASE, BOTH = 2, 3, 4
"""Triton's numbers of memory semantics (1 is relaxed)."""


class TooMany(Exception):
    """A launch touches its memory in too many pieces to compare."""


@dataclass(slots=True)
class Rows:
    """Columns of a launch: one entry per program and memory operation, in the order in which they took effect.

    Rows of equal `shape`, `lane` and `lanes` have each lane at the same place.
    """

    batch: Batch
    program: np.ndarray
    site: np.ndarray
    opcode: np.ndarray
    shape: np.ndarray
    lane: np.ndarray
    lanes: np.ndarray
    semantics: np.ndarray
    serial: np.ndarray
    role: np.ndarray
    buffer: np.ndarray
    address: np.ndarray
    footprint: np.ndarray
    barriers: np.ndarray  # (2, n): program and serial of every barrier

    @property
    def buffers(self) -> list[Buffer]:
        """The launch's buffers."""
        return self.batch.buffers

    def line(self, row: int) -> tuple[str, int]:
        """File and line that a row comes from."""
        site = int(self.site[row])
        frames = self.batch.sites[site].frames
        return (frames[0].file, frames[0].line) if frames else ("", site)

    def operations(self) -> np.ndarray:
        """A number for each row: equal ones are one operation of the programs of a batch, done together."""
        fresh = np.ones(self.serial.size, np.bool_)
        fresh[1:] = (
            (self.site[1:] != self.site[:-1])
            | ((self.semantics[1:] ^ self.semantics[:-1]) & TURN != 0)
            | (self.program[1:] <= self.program[:-1])
            | (np.diff(self.serial) != 1)
        )
        return np.cumsum(fresh)

    def touched(self, role: Role) -> np.ndarray:
        """Numbers of the buffers that are accessed in a role."""
        return np.unique(self.buffer[self.role == role])


@dataclass(slots=True)
class RowReader:
    """Collects the batches of a launch."""

    _parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def take(self, batch: Batch) -> Rows | None:
        """The rows of a launch when its last batch has come, None before."""
        if batch.first == 0:
            self._parts = []
        self._parts.append((batch.instruction, batch.access))
        if not batch.last:
            return None
        instruction = np.concatenate([part for part, _ in self._parts], axis=1)
        access = np.concatenate([part for _, part in self._parts], axis=1)
        self._parts = []
        names = {name: index for index, name in enumerate(INSTRUCTION_COLUMNS)}
        serial = access[0]
        program, site, opcode, shape, lane, lanes, semantics = (
            instruction[names[name]][serial] for name in ("core", "site", "opcode", "a", "b", "c", "d")
        )
        barriers = np.flatnonzero(instruction[names["opcode"]] == OPCODES.number("barrier"))
        role, buffer, address, footprint = access[1:]
        return Rows(
            batch, program, site, opcode, shape, lane, lanes, semantics, serial, role, buffer, address, footprint,
            np.stack((instruction[names["core"]][barriers], barriers)),
        )  # fmt: skip


@dataclass(slots=True)
class Intervals:
    """Bytes [start, end) that row `row` touches, for program `program`; sorted in no particular order."""

    start: np.ndarray
    end: np.ndarray
    program: np.ndarray
    row: np.ndarray

    def chosen(self, which: np.ndarray) -> Intervals:
        """Some of them."""
        return Intervals(self.start[which], self.end[which], self.program[which], self.row[which])


def intervals(rows: Rows, chosen: np.ndarray) -> Intervals:
    """The bytes that the rows in `chosen` (indices) touch. Raises TooMany when there are too many pieces."""
    footprints = rows.footprint[chosen]
    listed = footprints < 0
    parts = [_explicit(rows, chosen[listed])] if listed.any() else []
    total = sum(part[0].size for part in parts)
    for number in np.unique(footprints[~listed]):
        members = chosen[footprints == number]
        shape = FOOTPRINTS[number]
        if shape.nbytes == 0:
            continue
        offsets = shape.starts()
        total += members.size * offsets.size
        if total > MOST_INTERVALS:
            raise TooMany
        start = (rows.address[members][:, None] + offsets).reshape(-1)
        parts.append((start, start + shape.nbytes, np.repeat(members, offsets.size)))
    if not parts:
        empty = np.zeros(0, np.int64)
        return Intervals(empty, empty, empty, empty)
    start, end, row = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Intervals(start, end, rows.program[row], row)


def _explicit(rows: Rows, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(starts, ends, rows) of accesses at explicit places, neighbours of a row joined."""
    shapes = [rows.batch.explicit[-number - 1] for number in rows.footprint[members].tolist()]
    counts = np.array([shape.starts.size for shape in shapes])
    if int(counts.sum()) > MOST_INTERVALS:
        raise TooMany
    turn = np.repeat(np.arange(members.size), counts)
    start = np.concatenate([shape.starts for shape in shapes]) + rows.address[members][turn]
    size = np.array([shape.nbytes for shape in shapes])[turn]
    if not _ascends(turn, start):
        order = np.lexsort((start, turn))
        start, turn = start[order], turn[order]  # the bytes at each place are the same all over a row
    fresh = np.ones(start.size, np.bool_)
    fresh[1:] = (turn[1:] != turn[:-1]) | (start[1:] > start[:-1] + size[1:])
    heads = np.flatnonzero(fresh)
    tails = np.append(heads[1:] - 1, start.size - 1) if heads.size else heads
    return start[heads], start[tails] + size[tails], members[turn[heads]]


def _ascends(turn: np.ndarray, start: np.ndarray) -> bool:
    return bool(((np.diff(start) >= 0) | (np.diff(turn) > 0)).all())


def united(pieces: Intervals) -> Intervals:
    """Each program's bytes as intervals that do not touch, sorted by program and start; `row` is the first one's."""
    order = np.lexsort((pieces.row, pieces.start, pieces.program))
    start, end, program, row = (column[order] for column in (pieces.start, pieces.end, pieces.program, pieces.row))
    if not start.size:
        return Intervals(start, end, program, row)
    # A running maximum of ends within each program: programs are lifted apart by more than any address.
    low = int(start.min())
    span = int(end.max()) - low + 1
    lift = (np.cumsum(np.r_[0, np.diff(program) != 0])) * span
    reach = np.maximum.accumulate(end - low + lift)
    fresh = np.r_[True, (start - low + lift)[1:] > reach[:-1]]
    heads = np.flatnonzero(fresh)
    tails = np.r_[heads[1:] - 1, start.size - 1]
    return Intervals(start[heads], (reach - lift + low)[tails], program[heads], row[heads])
