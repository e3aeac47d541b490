"""The memory check: accesses outside their buffer, misaligned operands, freed buffers, memory over capacity.

GM is held against the argument's array, on-chip memory against the buffer that the tensor came from, not only against
the chip's capacity (sanitizer.md 3.4). Each batch is checked with whole-column arithmetic; only rows that fail are
looked at one by one.
"""

from __future__ import annotations

import numpy as np

from npuscope.sanitizer.access import AccessView, runs, view_of, width_of, widths_of
from npuscope.sanitizer.alignment import required
from npuscope.sanitizer.buffers import NEVER, BufferTable, FootprintTable
from npuscope.sanitizer.context import Context
from npuscope.sanitizer.faults import fault_finding
from npuscope.sanitizer.findings import Collector, Finding, Severity
from npuscope.sanitizer.heap import Heap
from npuscope.sanitizer.overwrite import Overwrites
from npuscope.trace.footprint import Footprint
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Buffer, Pipe, Role, Site, Space

REPEAT_BYTES = 256
"""What a vector instruction handles at a time (hardware.md 4.1)."""


class MemoryCheck:
    """Takes batches in order (`check(batch)`) and keeps `findings`."""

    name = "memory"

    def __init__(self, context: Context) -> None:
        self.collector = Collector()
        self._heap = Heap(self.collector, context.settings.leaks, context.settings.unused)
        self._overwrites = Overwrites(context) if context.overwrites else None
        self._footprints = FootprintTable()
        self._buffers = BufferTable()
        self._faults = 0
        self._over: set[Space] = set()  # memories that the launch's framework buffers overflow

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        overwrites = self._overwrites.findings if self._overwrites is not None else []
        return self.collector.findings + overwrites + self._heap.findings

    @property
    def limits(self) -> tuple[str, ...]:
        """What was not looked at."""
        return self._overwrites.limits if self._overwrites is not None else ()

    def host(self, batch: Batch) -> None:
        """Look at what the host did with device memory before a batch."""
        self._heap.host(batch)

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        if batch.first == 0:
            self._buffers = BufferTable()
            self._faults = 0
            self._over = set()
        self._machine_faults(batch)
        self._buffers.grow(batch)
        if batch.access.shape[1]:
            self._accesses(batch)
        if self._overwrites is not None:
            self._overwrites.check(batch)
        if batch.last:
            self._heap.end(batch)

    def _machine_faults(self, batch: Batch) -> None:
        for fault in batch.faults[self._faults :]:
            if fault.code == "over_capacity":
                self._over.add(Space[str(fault.facts["space"])])
            found = fault_finding(batch, fault)
            if found is not None:
                key = (found.kind, fault.site, str(fault.facts.get("queue", "")), str(fault.facts.get("what", "")))
                self.collector.add((batch.launch.kernel, *key), found)
        self._faults = len(batch.faults)

    def _accesses(self, batch: Batch) -> None:
        table = self._buffers
        instruction, role, buffer, address, footprint = batch.access
        low, high = self._footprints.extents(batch, footprint)
        touched = low < high
        outside = touched & ((address + low < table.base[buffer]) | (address + high > table.end[buffer]))
        stale = touched & (instruction > table.freed[buffer])
        frozen = touched & table.frozen[buffer] & (role != Role.READ)
        opcode = batch.column("opcode")[instruction - batch.first]
        skewed = touched & self._misaligned(batch, opcode, role, buffer, address, footprint)
        for row in self._heap.touch(batch, touched):
            self._late(batch, int(row))
        for row in self._shifted(batch, low, high):
            self._overlapping(batch, int(row))
        for row in np.flatnonzero(outside):
            self._illegal(batch, int(row))
        for row in np.flatnonzero(stale):
            self._freed(batch, int(row))
        for row in np.flatnonzero(frozen):
            self._frozen(batch, int(row))
        for row in np.flatnonzero(skewed):
            self._skewed(batch, int(row))

    def _shifted(self, batch: Batch, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Access rows of vector sources that lie askew under their destination: the same run of bytes at another place,
        so that a repeat reads what it or the one before it has just written (hardware.md 2.2)."""
        instruction, role, buffer, address, footprint = batch.access
        vector = batch.column("pipe")[instruction - batch.first] == Pipe.V
        local = vector & (self._buffers.space[buffer] == Space.UB) & self._footprints.runs(footprint)
        target = np.full(batch.instruction.shape[1], -1)
        writes = np.flatnonzero(local & (role == Role.WRITE))
        target[instruction[writes] - batch.first] = writes
        reads = np.flatnonzero(local & (role == Role.READ))
        place = target[instruction[reads] - batch.first]
        reads, place = reads[place >= 0], place[place >= 0]
        ahead = address[place] - address[reads]
        askew = (ahead != 0) & (np.abs(ahead) < high[reads] - low[reads]) & (ahead > -REPEAT_BYTES)
        return reads[askew & (footprint[reads] == footprint[place])]

    # -- alignment -----------------------------------------------------------------------------------------------

    def _misaligned(
        self, batch: Batch, opcode: np.ndarray, role: np.ndarray, buffer: np.ndarray, address: np.ndarray,
        footprint: np.ndarray,
    ) -> np.ndarray:
        """Which accesses start at an address that their instruction does not take."""
        space = self._buffers.space[buffer]
        width = widths_of(batch.buffers, buffer)
        role = np.where(role == Role.REWRITE, Role.WRITE, role)
        code = ((opcode * 4 + role) * 16 + space) * 32 + width
        kinds, where = np.unique(code, return_inverse=True)
        needed = np.array([self._needed(int(kind)) for kind in kinds], np.int64)[where]
        return (footprint >= 0) & (role != Role.SPOIL) & (address % needed != 0)  # what is spoilt is no operand

    def _needed(self, code: int) -> int:
        rest, width = divmod(code, 32)
        rest, space = divmod(rest, 16)
        number, role = divmod(rest, 4)
        return required(OPCODES.names[number], Role(role), Space(space), max(width, 1))

    # -- one bad row at a time -----------------------------------------------------------------------------------

    def _illegal(self, batch: Batch, row: int) -> None:
        view = view_of(batch, row)
        owner = view.buffer
        if owner.space in self._over and owner.kind in ("queue", "tbuf"):
            return  # the buffer itself does not fit, which has been said
        end = int(self._buffers.end[int(batch.access_column("buffer")[row])])
        starts, nbytes = runs(view.footprint)
        starts = starts + view.address
        inside = np.clip(np.minimum(starts + nbytes, end) - np.maximum(starts, owner.base), 0, nbytes)
        bad = int((nbytes - inside).sum())
        if bad == 0:
            return
        wrong = starts[inside < nbytes]
        before = wrong < owner.base
        first_bad = int(wrong[before].min()) if before.any() else max(int(wrong.min()), end)
        width = width_of(owner)
        kind = "illegal-write" if view.role is not Role.READ else "illegal-read"
        notes = [self._neighbour(batch, view, first_bad)] if owner.space is not Space.GM else []
        if end < owner.base + owner.size:
            notes.append(
                f"{owner.space.name} has {end} bytes for a kernel; "
                f"{owner.name or 'the tensor'} was laid at {owner.base}..{owner.base + owner.size}."
            )
        notes.append(_stride_hint(view))
        finding = view.finding(
            kind,
            Severity.ERROR,
            f"{bad} bytes are outside {view.owner_phrase(end)}",
            _advice_outside(view, owner, first_bad, end),
            size=bad,
            element=(first_bad - owner.base) // width,
            notes=tuple(note for note in notes if note),
        )
        self.collector.add(("outside", kind, *view.key()), finding)

    def _neighbour(self, batch: Batch, view: AccessView, address: int) -> str:
        """Whose bytes the overrun lands in."""
        for other in batch.buffers:
            here = other.space is view.buffer.space and other.core in (-1, view.core)
            same = (other.base, other.size) == (view.buffer.base, view.buffer.size)
            if here and not same and other.base <= address < other.base + other.size:
                return f"The first byte outside belongs to {other.name or 'another tensor'}."
        return ""

    def _freed(self, batch: Batch, row: int) -> None:
        view = view_of(batch, row)
        freed_at = int(self._buffers.freed[int(batch.access_column("buffer")[row])])
        freed_site = _site_of(batch, freed_at)
        where = f" on line {freed_site.frames[0].line}" if freed_site and freed_site.frames else ""
        finding = view.finding(
            "use-after-free",
            Severity.ERROR,
            f"{view.buffer.name or 'the queue buffer'} was given back with free_tensor{where} and is not this "
            "tensor's any more",
            "Move free_tensor after the last use, or allocate a new tensor.",
            size=view.touched_bytes(),
        )
        self.collector.add(("freed", *view.key()), finding)

    def _late(self, batch: Batch, row: int) -> None:
        view = view_of(batch, row)
        block = self._heap.blocks.by_serial[view.buffer.block]
        finding = view.finding(
            "use-after-free",
            Severity.ERROR,
            f"{view.buffer.name} lies in device memory that is free already",
            "Launch before the free, or allocate the memory anew.",
            size=view.touched_bytes(),
            notes=block.notes(),
        )
        self.collector.add(("late", block.made, block.freed, *view.key()), finding)

    def _frozen(self, batch: Batch, row: int) -> None:
        view = view_of(batch, row)
        finding = view.finding(
            "write-to-read-only",
            Severity.ERROR,
            f"{view.buffer.name} is read-only on the host; nothing was written",
            "Pass a writeable array (array.copy()), or do not write to it.",
            size=view.touched_bytes(),
        )
        self.collector.add(("frozen", *view.key()), finding)

    def _overlapping(self, batch: Batch, row: int) -> None:
        view = view_of(batch, row)
        finding = view.finding(
            "operand-overlap",
            Severity.ERROR,
            f"the destination overlaps {view.buffer.name or 'a source'} in part: what is read depends on how far the "
            "instruction has come",
            "Let source and destination be the same or apart, or go through another buffer.",
            size=view.touched_bytes(),
        )
        self.collector.add(("overlap", *view.key()), finding)

    def _skewed(self, batch: Batch, row: int) -> None:
        view = view_of(batch, row)
        owner = view.buffer
        needed = required(view.opcode, view.role, owner.space, width_of(owner))
        offset = view.address - owner.base
        width = width_of(owner)
        finding = view.finding(
            "misaligned",
            Severity.ERROR,
            f"the {owner.space.name} operand starts at byte {view.address}, "
            f"{view.address % needed} past a multiple of {needed}",
            _advice_alignment(owner, offset, needed),
            size=view.touched_bytes(),
            element=offset // width,
        )
        self.collector.add(("misaligned", *view.key()), finding)


def _stride_hint(view: AccessView) -> str:
    """Rows that lie further apart than they are long by the width of an element: a stride in bytes was taken for one in
    elements."""
    shape = view.footprint
    width = width_of(view.buffer)
    if not isinstance(shape, Footprint) or len(shape.loops) != 1 or width < 2 or shape.mask is not None:
        return ""
    count, stride = shape.loops[0]
    if count < 2 or stride != shape.nbytes * width:
        return ""
    return (
        f"The rows are {shape.nbytes} bytes long and {stride} bytes apart, {width} times as far, which is the width of "
        "an element: a stride in bytes may have been given where elements are expected."
    )


def _advice_alignment(owner: Buffer, offset: int, needed: int) -> str:
    name = owner.name or "the tensor"
    if owner.base % needed and owner.space is not Space.GM:
        return f"{name} itself was laid at byte {owner.base}: lay it at a multiple of {needed}."
    width = width_of(owner)
    return (
        f"Start it on {needed} bytes: at an offset that is a multiple of {max(needed // width, 1)} "
        f"{owner.dtype or 'byte'} elements (it is {offset / width:g} now)."
    )


def _advice_outside(view: AccessView, owner: Buffer, first_bad: int, end: int) -> str:
    width = width_of(owner)
    name = owner.name or "the tensor"
    if first_bad < owner.base:
        return f"The access begins before {name}: check the offset."
    last = view.address + view.footprint.high
    over = -(-(last - end) // width)
    if owner.space is Space.GM:
        return f"The access runs {over} elements past the end of {name}: shorten the last tile, or mask its tail."
    return f"Shorten the access by {over} elements or make {name} at least {-(-(last - owner.base) // width)} long."


def _site_of(batch: Batch, row: int) -> Site | None:
    """The site of an instruction by its row in the launch, when it is in this batch."""
    if row == NEVER or row < batch.first:
        return None
    return batch.sites[int(batch.column("site")[row - batch.first])]

