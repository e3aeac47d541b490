"""Missing cache maintenance, exactly: what a core really reads from an old line, what nobody else can see because it is
still in a core's cache, and what a line that is written back destroys.

Only lines that some scalar unit touches can be wrong; copies of the other pipes are held against those lines with
interval tests, and a launch without scalar accesses to global memory costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.sanitizer.buffers import BufferTable, FootprintTable
from npuscope.sanitizer.cache_lines import LINE, CoreCache, Line, Ref, among, bits, capacity, touched
from npuscope.sanitizer.dcci_words import Missing, WriteBack, missing_finding, write_back_finding
from npuscope.sanitizer.findings import Collector
from npuscope.sanitizer.tally import rows_of
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import NO_SITE, OPCODES, Fault, Role, Space

LOAD, STORE = OPCODES.number("scalar_load"), OPCODES.number("scalar_store")
DCCI, PRELOAD = OPCODES.number("dcci"), OPCODES.number("dcache_preload")
END = OPCODES.number("kernel_end")
CACHED = ("scalar_load", "scalar_store", "dcache_preload")
ENTIRE, UB_ONLY = 1, 1
"""Operand a and b of a dcci: the entire cache; the destination that leaves lines of global memory alone."""
NO_ACCESS = -1


class ExactCache:
    """The caches of one launch."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._footprints = FootprintTable()
        self._buffers = BufferTable()
        self._caches: dict[int, CoreCache] = {}
        self._holders: dict[int, set[int]] = {}  # line number -> cores that hold it
        self._lost: dict[tuple[int, int], Fault] = {}  # (core, line) -> what the machine saw lost
        self._read: dict[int, Fault] = {}  # row -> what the machine saw read
        self._ended: list[int] = []
        self._faults = 0

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        self._follow(batch)
        if batch.last:
            self._finish(batch)

    def _follow(self, batch: Batch) -> None:
        self._buffers.grow(batch)
        on_gm = self._buffers.space[batch.access_column("buffer")] == Space.GM
        scalar = rows_of(batch, CACHED)
        at = batch.access_column("instruction") - batch.first
        cached = on_gm & scalar[at] if at.size else on_gm
        if not self._holders and not cached.any():
            self._faults = len(batch.faults)
            return
        self._evidence(batch)
        for event in self._events(batch, on_gm, cached, at):
            self._event(batch, *event)

    def _finish(self, batch: Batch) -> None:
        """The launch is over: what its cores wrote back when they ended. In the launch nothing is ordered after the end
        of a core, so that until here no other core could count on it, whatever came first in this run."""
        for core in self._ended:
            self._flush(batch, core, "at the end of the kernel", NO_SITE)

    def _evidence(self, batch: Batch) -> None:
        """What the machine itself saw, for the reports."""
        for fault in batch.faults[self._faults :]:
            if fault.code == "lost_write":
                self._lost[fault.core, int(fault.facts["address"]) // LINE] = fault
            elif fault.code == "stale_read":
                self._read[fault.instruction] = fault
        self._faults = len(batch.faults)

    def _events(
        self, batch: Batch, on_gm: np.ndarray, cached: np.ndarray, at: np.ndarray
    ) -> list[list[int]]:
        """The operands of `_event` for everything that may matter, in order; DCCI and the end of a kernel come without
        an access."""
        low, high = self._footprints.extents(batch, batch.access_column("footprint"))
        address = batch.access_column("address")
        start, end = address + low, address + high
        mine = np.unique(np.concatenate([start[cached] // LINE, (end[cached] - 1) // LINE]))
        lines = np.union1d(mine, np.fromiter(self._holders, np.int64, len(self._holders)))
        place = np.searchsorted(lines, start // LINE)
        near = on_gm & (low < high) & (place < lines.size)
        near &= lines[np.minimum(place, lines.size - 1)] * LINE < end
        maintenance = rows_of(batch, ("dcci",))
        near &= ~maintenance[at]
        buffer = batch.access_column("buffer")
        outside = cached & ((start < self._buffers.base[buffer]) | (end > self._buffers.end[buffer]))
        chosen = np.flatnonzero((near | cached) & ~outside)  # outside its array nothing is cached
        own = maintenance[at]
        self._line_of = dict(zip(at[own].tolist(), (start[own] // LINE).tolist(), strict=True))
        alone = np.flatnonzero(maintenance | rows_of(batch, ("kernel_end",)))
        rows = np.concatenate([at[chosen], alone])
        columns = [rows, *(batch.column(name)[rows] for name in ("core", "pipe", "opcode", "site", "a", "b"))]
        for column in (*batch.access[1:], end):
            columns.append(np.concatenate([column[chosen], np.full(alone.size, NO_ACCESS)]))
        table = np.stack(columns)[:, np.argsort(rows, kind="stable")]
        return table.T.tolist()

    def _event(
        self, batch: Batch, row: int, core: int, pipe: int, opcode: int, site: int, a: int, b: int, role: int,
        buffer: int, address: int, footprint: int, end: int,
    ) -> None:
        if buffer != NO_ACCESS:
            ref = Ref(core, pipe, opcode, site, buffer, role, address, footprint, batch.first + row)
            if opcode in (LOAD, STORE, PRELOAD):
                self._scalar(batch, ref, end)
            else:
                self._copy(batch, ref)
        elif opcode == END:
            self._end(core)
        elif b != UB_ONLY:
            self._maintain(batch, core, site, None if a == ENTIRE else self._line_of.get(row, -1))

    # -- the scalar unit ---------------------------------------------------------------------------------------------

    def _scalar(self, batch: Batch, ref: Ref, end: int) -> None:
        start, cache = ref.address, self._cache(batch, ref.core)
        for number in range(start // LINE, (end - 1) // LINE + 1):
            line, fresh, evicted = cache.use(number, ref)
            if evicted is not None:
                self._forget(ref.core, evicted.number)
                self._write_back(batch, ref.core, evicted, "when the line is evicted", ref.site)
            if fresh:
                self._holders.setdefault(number, set()).add(ref.core)
            mask = bits(start, end, number)
            if ref.opcode == STORE:
                line.write(mask, ref)
            elif ref.opcode == LOAD:
                self._load(batch, ref, line, mask & ~line.dirty, fresh)

    def _load(self, batch: Batch, ref: Ref, line: Line, mask: int, fresh: bool) -> None:
        """A load of bytes that the core has not written itself; `fresh`: it has just brought the line."""
        kept = mask & line.stale
        if kept:
            for writer in among(line.newer, kept):
                self._missing(batch, Missing(writer, ref, line.loaded))
        if len(self._holders[line.number]) > 1:
            for writer in self._unwritten(line.number, mask, ref.core):
                held = None if fresh else line.loaded
                self._missing(batch, Missing(writer, ref, held, True, writer.core in self._ended))

    def _unwritten(self, number: int, mask: int, apart: int = -1) -> Iterator[Ref]:
        """Stores to bytes of a line that are still in the cache of a core other than `apart`."""
        for holder in sorted(self._holders.get(number, ())):
            line = self._caches[holder].lines[number]
            if holder != apart and line.dirty & mask:
                yield from among(line.stores, mask)

    # -- the other pipes ---------------------------------------------------------------------------------------------

    def _copy(self, batch: Batch, ref: Ref) -> None:
        low, high = self._footprints.extents(batch, np.array([ref.footprint]))
        first, last = (ref.address + int(low[0])) // LINE, (ref.address + int(high[0]) - 1) // LINE
        held = self._holders
        numbers = range(first, last + 1) if last - first < len(held) else sorted(held)
        for number in numbers:
            if number not in held or not first <= number <= last:
                continue
            mask = touched(batch, ref, number)
            if not mask:
                continue
            if ref.role == Role.READ:
                for writer in self._unwritten(number, mask):
                    self._missing(batch, Missing(writer, ref, None, True, writer.core in self._ended))
            else:
                for holder in held[number]:
                    self._caches[holder].lines[number].outdate(mask, ref)

    # -- maintenance -------------------------------------------------------------------------------------------------

    def _maintain(self, batch: Batch, core: int, site: int, number: int | None) -> None:
        """DCCI of a line, None for all."""
        if number is None:
            self._flush(batch, core, "by the DCCI of the entire cache", site)
            return
        line = self._cache(batch, core).lines.pop(number, None)
        if line is not None:
            self._forget(core, number)
            self._write_back(batch, core, line, "by the DCCI", site)

    def _end(self, core: int) -> None:
        """A core has ended. What it wrote counts as unwritten until the launch is over."""
        cache = self._caches.get(core)
        if cache is not None:
            for number in [line.number for line in cache.lines.values() if not line.dirty]:
                del cache.lines[number]
                self._forget(core, number)
            self._ended.append(core)

    def _flush(self, batch: Batch, core: int, when: str, site: int) -> None:
        cache = self._caches.get(core)
        if cache is not None:
            lines = list(cache.lines.values())
            for line in lines:
                self._forget(core, line.number)
            cache.lines.clear()
            for line in lines:
                self._write_back(batch, core, line, when, site)

    def _write_back(self, batch: Batch, core: int, line: Line, when: str, site: int) -> None:
        """A line that has left the cache of a core goes to memory if the core wrote to it."""
        if not line.dirty:
            return
        for mask, newer in line.newer:
            store = next(among(line.stores, mask), line.stores[-1][1])
            event = WriteBack(store, newer, when, site, mask.bit_count(), line.number * LINE)
            found = write_back_finding(batch, event, self._lost.get((core, line.number)))
            key = (batch.launch.kernel, found.kind, store.site, newer.site, store.buffer)
            self.collector.add(key, found)
        for holder in self._holders.get(line.number, ()):
            other = self._caches[holder].lines[line.number]
            for mask, store in line.stores:
                other.outdate(mask, store)

    # -- book-keeping ------------------------------------------------------------------------------------------------

    def _cache(self, batch: Batch, core: int) -> CoreCache:
        cache = self._caches.get(core)
        if cache is None:
            launch = batch.launch
            cache = self._caches[core] = CoreCache(capacity(launch.arch, launch.cores[core].type))
        return cache

    def _forget(self, core: int, number: int) -> None:
        holders = self._holders[number]
        holders.discard(core)
        if not holders:
            del self._holders[number]

    def _missing(self, batch: Batch, missing: Missing) -> None:
        found = missing_finding(batch, missing, self._read.get(missing.reader.row))
        key = (batch.launch.kernel, "missing", missing.writer.site, missing.reader.site, missing.reader.buffer,
               missing.unwritten, missing.writer.core == missing.reader.core)
        self.collector.add(key, found)
