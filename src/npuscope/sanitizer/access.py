"""One access of a trace with everything it refers to, for the checks to reason about and to report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.sanitizer.findings import Access, Finding, Owner, Severity, launched
from npuscope.trace.footprint import FOOTPRINTS, Explicit, Footprint
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Buffer, Pipe, Role, Site

ROLE_WORDS = {Role.READ: "read", Role.WRITE: "write", Role.ATOMIC: "atomic write", Role.SPOIL: "write",
              Role.REWRITE: "write"}


def view_of(batch: Batch, row: int) -> AccessView:
    """The access in row `row` of a batch's access table."""
    instruction, role, buffer, address, footprint = (int(value) for value in batch.access[:, row])
    column = instruction - batch.first
    core, pipe, opcode, site = (int(batch.column(name)[column]) for name in ("core", "pipe", "opcode", "site"))
    shape = footprint_of(batch, footprint)
    return describe(batch, site, core, opcode, pipe, batch.buffers[buffer], Role(role), address, shape, instruction)


def footprint_of(batch: Batch, number: int) -> Footprint | Explicit:
    """A footprint by its number in an access row."""
    return FOOTPRINTS[number] if number >= 0 else batch.explicit[-number - 1]


def describe(
    batch: Batch, site: int, core: int, opcode: int, pipe: int, buffer: Buffer, role: Role, address: int,
    footprint: Footprint | Explicit, serial: int = -1,
) -> AccessView:
    """An access from the numbers that the trace holds; `serial` is the row of its instruction in the launch."""
    return AccessView(batch, role, buffer, address, footprint, core, Pipe(pipe), OPCODES.names[opcode], site, serial)


@dataclass(frozen=True, slots=True)
class AccessView:
    """One access with everything it refers to."""

    batch: Batch
    role: Role
    buffer: Buffer
    address: int
    footprint: Footprint | Explicit
    core: int
    pipe: Pipe
    opcode: str
    site_number: int
    serial: int = -1

    @property
    def site(self) -> Site:
        """Where the instruction comes from."""
        return self.batch.sites[self.site_number]

    def key(self) -> tuple[Any, ...]:
        """Rows that say the same: same line, instruction, role and owner's line."""
        return (self.batch.launch.kernel, self.site_number, self.opcode, self.role, self.buffer.space,
                self.buffer.name, self.buffer.site)

    def touched_bytes(self) -> int:
        """Bytes that the access touches."""
        starts, nbytes = runs(self.footprint)
        return int(starts.size * nbytes)

    def owner_phrase(self, end: int) -> str:
        """The owner and its extent in words."""
        owner = self.buffer
        width = width_of(owner)
        name = owner.name or f"the tensor at {owner.space.name} {owner.base:#x}"
        elements = (end - owner.base) // width
        return f"{name}, which has {elements} {owner.dtype or 'byte'} elements ({end - owner.base} bytes)"

    def side(self) -> Access:
        """The access as a finding shows it."""
        owner = self.buffer
        width = width_of(owner)
        low = self.address + self.footprint.low - owner.base
        high = self.address + self.footprint.high - owner.base
        return Access(
            self.site.name, self.opcode, self.pipe.name, ROLE_WORDS[self.role], self.address, self.touched_bytes(),
            low // width, -(-high // width), self.site.frames, self.batch.launch.cores[self.core].name, self.serial,
            self.site_number, owner.name, owner.space.name,
        )

    def finding(
        self, kind: str, severity: Severity, summary: str, advice: str, size: int, element: int = -1,
        notes: tuple[str, ...] = (),
    ) -> Finding:
        """A finding about this access."""
        launch = self.batch.launch
        owner = self.buffer
        made = self.batch.sites[owner.site].frames
        return Finding(
            kind, severity, summary, advice, launch.kernel, launch.index, (launch.cores[self.core].name,),
            self.side(),
            Owner(owner.name, owner.kind, owner.space.name, owner.base, owner.size, owner.dtype, owner.shape, made),
            size, element, 1, launched(launch), launch.frame, notes,
        )


def runs(footprint: Footprint | Explicit) -> tuple[np.ndarray, int]:
    """(unique starts relative to the address, bytes per run)."""
    starts = footprint.starts() if isinstance(footprint, Footprint) else footprint.starts
    return np.unique(starts), footprint.nbytes


_WIDTHS: dict[str, int] = {"bfloat16": 2, "bool": 1, "": 1, "int4": 1}


def width_of(buffer: Buffer) -> int:
    """Bytes of an element of a buffer; 1 where its type is not known."""
    known = _WIDTHS.get(buffer.dtype)
    if known is None:
        try:
            known = np.dtype(buffer.dtype).itemsize
        except TypeError:
            known = 1
        _WIDTHS[buffer.dtype] = known
    return known


def widths_of(buffers: list[Buffer], numbers: np.ndarray) -> np.ndarray:
    """Element widths of the buffers that rows refer to."""
    unique, where = np.unique(numbers, return_inverse=True)
    return np.array([width_of(buffers[int(number)]) for number in unique], np.int64)[where]
