"""Missing cache maintenance by the vendor's rule (sanitizer.md 3.11): a scalar store that other cores read must have an
effective DCCI as the very next instruction of its core, a scalar load of what other cores wrote one as the very last
before it. The rule does not look at what the caches hold, so it also speaks of kernels that work by luck.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.sanitizer.access import footprint_of, runs
from npuscope.sanitizer.buffers import BufferTable, FootprintTable
from npuscope.sanitizer.cache_lines import Ref
from npuscope.sanitizer.dcci_words import pair_finding
from npuscope.sanitizer.findings import Collector
from npuscope.sanitizer.tally import rows_of
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Pipe, Role, Space

LINES = {"2201": 256, "3510": 64}
"""Bytes of a line as the vendor's tool has them, by architecture; elsewhere a DCCI of one line never counts."""
UNSEEN = ("que_alloc", "que_free", "que_enque", "que_deque", "init_buffer", "pool_reset", "pipe_reset", "pipe_destroy",
          "data_sync_barrier")
"""Rows of ours that the vendor's tool has no record of."""
ACQUIRES = ("cross_core_wait", "ib_wait", "wait_pre_block", "kfc_wait", "sync_all")
UB_ONLY, ENTIRE = 1, 1
CORE, PIPE, OPCODE, SITE, BUFFER, ROLE, ADDRESS, FOOTPRINT, ROW, START, END, CLEAN = range(12)
"""Rows of the table of accesses; CLEAN: the rule's DCCI is beside it."""
EVERY, NONE = -1, -2
"""What a record covers that is a DCCI of the entire cache, or none that counts."""
GROUP = (CORE, PIPE, OPCODE, SITE, BUFFER, ROLE, ADDRESS, FOOTPRINT, CLEAN)


class StrictRule:
    """The accesses of one launch to global memory, looked at when it ends."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._footprints = FootprintTable()
        self._buffers = BufferTable()
        self._accesses: list[np.ndarray] = []
        self._records: list[np.ndarray] = []  # (3, n): core, row, line that a DCCI covers (EVERY: all, NONE: no DCCI)
        self._acquired: list[np.ndarray] = []  # (2, n): core, row
        self._scalar = False

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        self._buffers.grow(batch)
        self._note_records(batch)
        self._note_accesses(batch)
        if batch.last and self._scalar:
            self._judge(batch)

    def _note_records(self, batch: Batch) -> None:
        seen = ~rows_of(batch, UNSEEN)
        lines = np.full(seen.size, NONE)
        maintenance = rows_of(batch, ("dcci",))
        if maintenance.any():
            _cover(batch, maintenance, lines)
        rows = np.flatnonzero(seen)
        self._records.append(np.stack([batch.column("core")[rows], batch.first + rows, lines[rows]]))
        acquires = rows_of(batch, ACQUIRES)
        acquires &= ~(rows_of(batch, ("sync_all",)) & (batch.column("a") == 0))  # its arrival
        rows = np.flatnonzero(acquires)
        self._acquired.append(np.stack([batch.column("core")[rows], batch.first + rows]))

    def _note_accesses(self, batch: Batch) -> None:
        instruction, role, buffer, address, footprint = batch.access
        low, high = self._footprints.extents(batch, footprint)
        on_gm = (self._buffers.space[buffer] == Space.GM) & (low < high) if buffer.size else np.zeros(0, np.bool_)
        at = instruction - batch.first
        on_gm &= ~rows_of(batch, ("dcci", "dcache_preload"))[at]
        if not on_gm.any():
            return
        at = at[on_gm]
        columns = [batch.column(name)[at] for name in ("core", "pipe", "opcode", "site")]
        columns += [column[on_gm] for column in (buffer, role, address, footprint)]
        columns += [instruction[on_gm], (address + low)[on_gm], (address + high)[on_gm], np.zeros(at.size, np.int64)]
        self._accesses.append(np.stack(columns))
        self._scalar = self._scalar or bool((columns[PIPE] == Pipe.S).any())

    # -- at the end of the launch ------------------------------------------------------------------------------------

    def _judge(self, batch: Batch) -> None:
        table = np.concatenate(self._accesses, axis=1)
        scalar = table[PIPE] == Pipe.S
        low, high = table[START, scalar].min(), table[END, scalar].max()
        table = table[:, (table[START] < high) & (table[END] > low)]
        self._beside(table, LINES.get(batch.launch.arch, 0))
        groups = _grouped(table)
        acquired = np.concatenate(self._acquired, axis=1)
        for write, first, read, last in _pairs(batch, groups):
            if not _ordered_before(acquired, last, write[CORE], first):
                self._missing(batch, _ref(write, first), _ref(read, last), not write[CLEAN], not read[CLEAN])

    def _beside(self, table: np.ndarray, size: int) -> None:
        """Mark the scalar accesses that have their DCCI: stores the record after, loads the record before."""
        records = np.concatenate(self._records, axis=1)
        records = records[:, np.lexsort((records[1], records[0]))]
        scalar = np.flatnonzero(table[PIPE] == Pipe.S)
        place = np.searchsorted(_code(records[0], records[1]), _code(table[CORE, scalar], table[ROW, scalar]))
        beside = place + np.where(table[ROLE, scalar] == Role.READ, -1, 1)
        inside = (beside >= 0) & (beside < records.shape[1])
        beside = np.clip(beside, 0, records.shape[1] - 1)
        covered = records[2, beside]
        same = covered == EVERY
        if size:
            same |= (covered >= 0) & (covered // size == table[ADDRESS, scalar] // size)
        table[CLEAN, scalar] = inside & (records[0, beside] == table[CORE, scalar]) & same
        table[CLEAN, table[PIPE] != Pipe.S] = 1

    def _missing(self, batch: Batch, writer: Ref, reader: Ref, after: bool, before: bool) -> None:
        write, read = writer.view(batch), reader.view(batch)
        cores = batch.launch.cores
        lacking = " and ".join([*(["after the store"] if after else []), *(["before the load"] if before else [])])
        summary = (
            f"{cores[reader.core].name} reads {read.buffer.name or 'global memory'}, which {cores[writer.core].name} "
            f"writes, with no DCCI of that line right {lacking}"
        )
        found = pair_finding(batch, write, read, summary, after, before)
        key = (batch.launch.kernel, "strict", writer.site, reader.site, writer.address, reader.address)
        self.collector.add((*key, writer.core, reader.core), found)


def _cover(batch: Batch, maintenance: np.ndarray, lines: np.ndarray) -> None:
    """Put the address of the line that each effective DCCI covers into `lines`."""
    rows = batch.access_column("instruction") - batch.first
    own = maintenance[rows]
    lines[rows[own]] = batch.access_column("address")[own]
    entire = maintenance & (batch.column("a") == ENTIRE)
    lines[entire] = EVERY
    lines[maintenance & (batch.column("b") == UB_ONLY)] = NONE


def _code(core: np.ndarray, row: np.ndarray) -> np.ndarray:
    code: np.ndarray = (core << 40) + row
    return code


def _grouped(table: np.ndarray) -> np.ndarray:
    """Accesses that differ in their row alone, together: the table's rows, where ROW is the group's first row in the
    launch, and below them its last."""
    order = np.lexsort((table[ROW], *(table[one] for one in GROUP)))
    table = table[:, order]
    fresh = np.ones(table.shape[1], np.bool_)
    keys = table[list(GROUP)]
    fresh[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    heads = np.flatnonzero(fresh)
    tails = np.append(heads[1:], table.shape[1]) - 1
    return np.concatenate([table[:, heads], table[ROW, tails][None]])


def _pairs(batch: Batch, groups: np.ndarray) -> Iterator[tuple[list[int], int, list[int], int]]:
    """(write, its first row, read, its last row) of different cores on common bytes where a DCCI is missing."""
    writes, reads = groups[:, groups[ROLE] != Role.READ], groups[:, groups[ROLE] == Role.READ]
    writes = writes[:, np.argsort(writes[START], kind="stable")]
    reach = np.maximum.accumulate(writes[END])
    first = np.searchsorted(reach, reads[START], side="right")
    last = np.searchsorted(writes[START], reads[END], side="left")
    for at in np.flatnonzero(first < last):
        read, part = reads[:, at], writes[:, first[at] : last[at]]
        near = (part[END] > read[START]) & (part[CORE] != read[CORE]) & ((part[CLEAN] == 0) | (read[CLEAN] == 0))
        near &= (part[PIPE] == Pipe.S) | (read[PIPE] == Pipe.S)
        for place in np.flatnonzero(near):
            write = part[:, place]
            if _overlap(batch, write, read):
                yield write[:12].tolist(), int(write[ROW]), read[:12].tolist(), int(read[12])


def _overlap(batch: Batch, one: np.ndarray, two: np.ndarray) -> bool:
    """Whether two accesses touch a common byte."""
    starts, size = runs(footprint_of(batch, int(one[FOOTPRINT])))
    others, width = runs(footprint_of(batch, int(two[FOOTPRINT])))
    starts, others = starts + one[ADDRESS], others + two[ADDRESS]
    place = np.searchsorted(others, starts - width, side="right")
    return bool(((place < others.size) & (others[np.minimum(place, others.size - 1)] < starts + size)).any())


def _ordered_before(acquired: np.ndarray, read_row: int, writer: int, write_row: int) -> bool:
    """Whether a read is ordered before a write on core `writer`: it comes first, and that core has waited for another
    one in between."""
    if read_row > write_row:
        return False
    between = (acquired[0] == writer) & (acquired[1] > read_row) & (acquired[1] < write_row)
    return bool(between.any())


def _ref(row: list[int], number: int) -> Ref:
    return Ref._make([*row[:8], number])
