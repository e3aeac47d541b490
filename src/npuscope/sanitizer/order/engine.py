"""Drives the sweep over a trace: grows tables, lays out pages, hands out what was found."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.sanitizer.order.access import NOW
from npuscope.sanitizer.order.events import CROSSING, PIPES, SLOT_OF_PIPE, Action, OpcodeTable
from npuscope.sanitizer.order.marks import compact
from npuscope.sanitizer.order.runs import Runs, explicit_runs
from npuscope.sanitizer.order.segments import set_undefined
from npuscope.sanitizer.order.state import (
    AUTO,
    CROWDED,
    DEFINED,
    FOREIGN,
    FOREIGN_ROWS,
    FOUND,
    HISTORY,
    INDEXED,
    KNEW_FOREIGN,
    MARKS,
    MESSAGES,
    NEVER_WRITTEN,
    PAGE_BITS,
    ROOM,
    SEGMENTS,
    SEGMENTS_FREE,
    doubled,
    give_back,
    new_state,
)
from npuscope.sanitizer.order.sweep import sweep
from npuscope.sanitizer.order.table import rehash
from npuscope.sanitizer.order.tables import Tables
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Buffer, CoreType, Space

RUNS, ACTIONS = Runs(), OpcodeTable()
"""Footprints and opcodes have the same numbers for the life of the process, so their tables live as long."""
MOST_AGENTS = 512 * 7
"""Agents of a launch whose cores synchronise, at most: what each knows of all others is a row of that length."""


def writeable(table: np.ndarray) -> np.ndarray:
    """The table as every batch has it: compiled code would be made anew for a read-only one."""
    return table if table.flags.writeable and table.flags.c_contiguous else table.copy()


class Hazards:
    """Finds unordered accesses and uses of bytes never written, launch by launch."""

    def __init__(self, races: bool = True, undefined: bool = True) -> None:
        self.races = races
        self.undefined = undefined
        self.crowded = 0  # what was not kept because a table was full, in all launches
        self.unordered: list[str] = []  # kernels with more synchronised cores than are followed
        self._begin_tables(0)

    def _begin_tables(self, cores: int) -> None:
        self._known_buffers = 0
        self._buffers = np.empty((5, 0), np.int64)
        self._regions: list[tuple[int, int, int]] = []
        self._spare: dict[int, list[int]] = {}
        self._follow = self.races
        self.state = new_state(cores, len(Space)) if cores else None

    @property
    def found(self) -> np.ndarray:
        """What the launch has come to so far, a row of columns `order.state.KIND` and so on each."""
        return self.state.found[: self.state.used[FOUND]] if self.state else np.empty((0, 1), np.int64)

    # -- a batch -------------------------------------------------------------------------------------------------

    def check(self, batch: Batch) -> None:
        """Go through a batch."""
        if batch.first == 0:
            self._begin(batch)
        RUNS.grow()
        ACTIONS.grow()
        self._provide(batch)
        tables = self._tables(batch)
        now, ended = np.zeros(NOW, np.int64), np.zeros(len(batch.launch.cores), np.bool_)
        undefined = np.zeros(3, np.int64)
        row = access = 0
        while row < batch.instruction.shape[1]:
            assert self.state is not None
            row, access = sweep(self.state, tables, row, access, now, undefined, ended)
            if row < batch.instruction.shape[1]:
                self._make_room()
        self._recycle(ended)
        if batch.last:
            assert self.state is not None
            self.crowded += int(self.state.used[CROWDED])
            self.state.used[CROWDED] = 0

    def release(self) -> None:
        """Give back the tables of a launch that is over and has been reported."""
        if self.state is not None:
            give_back(self.state)
        self._begin_tables(0)

    def _begin(self, batch: Batch) -> None:
        launch = batch.launch
        self._begin_tables(max(len(launch.cores), 1))
        assert self.state is not None
        for space, size in launch.capacity.items():
            self.state.core_page[-1, space] = size
        if launch.options.get("auto_sync", "True") != "False":
            for number, core in enumerate(launch.cores):
                self.state.clock[number, 0, AUTO] = core.type is CoreType.AIV

    def _tables(self, batch: Batch) -> Tables:
        explicit, lowest = explicit_runs(batch)
        settings = (
            batch.first, lowest, batch.launch.arch == "3510", self._follow, self.undefined, len(batch.launch.cores)
        )
        return Tables(
            writeable(batch.instruction), writeable(batch.access), ACTIONS.table, SLOT_OF_PIPE, RUNS.first, RUNS.merged,
            RUNS.in_order, explicit.first[0], explicit.merged, self._buffers, np.array(settings, np.int64),
        )

    # -- where memory is -----------------------------------------------------------------------------------------

    def _provide(self, batch: Batch) -> None:
        """Make sure that everything a batch names has tables: buffers, pages, clocks between cores."""
        fresh = batch.buffers[self._known_buffers :]
        if fresh:
            self._known_buffers += len(fresh)
            self._add_buffers(fresh)
        self._add_cores(batch)
        alone = self.state is not None and self.state.foreign.shape[0] == 1
        if self._follow and alone and self._crosses(batch):
            self._follow_cores(batch)

    def _crosses(self, batch: Batch) -> bool:
        """Whether a core may learn of another one in this batch."""
        actions = ACTIONS.table[0, batch.column("opcode")]
        crossing = np.isin(actions, [int(action) for action in CROSSING])
        crossing &= (actions != Action.POLL) | (batch.column("a") != 0)
        return len(batch.launch.cores) > 1 and bool(crossing.any())

    def _follow_cores(self, batch: Batch) -> None:
        assert self.state is not None
        agents = self.state.foreign.shape[1]
        if agents > MOST_AGENTS:
            self._follow = False
            self.unordered.append(batch.launch.kernel)
            return
        rows = min(max((1 << 24) // agents, 256), 4096)
        self.state = self.state._replace(foreign=np.zeros((rows, agents), np.int32))

    def _add_buffers(self, fresh: list[Buffer]) -> None:
        assert self.state is not None
        self._add_regions([buffer for buffer in fresh if buffer.space is Space.GM])
        rows = []
        for buffer in fresh:
            low, high, page = self._region(buffer)
            rows.append((int(buffer.space), buffer.core, page, low, high))
        self._buffers = np.ascontiguousarray(np.append(self._buffers, np.array(rows, np.int64).T, axis=1))
        for buffer in fresh:
            for start, end in buffer.undefined:
                self._set_undefined(buffer.base + start, buffer.base + end)

    def _region(self, buffer: Buffer) -> tuple[int, int, int]:
        """(low, high, first page) of the stretch of GM that a buffer lies in."""
        if buffer.space is Space.GM:
            for region in self._regions:
                if region[0] <= buffer.base < region[1]:
                    return region
        return 0, 0, -1

    def _add_regions(self, buffers: list[Buffer]) -> None:
        """Lay out pages for GM; arrays that overlap share theirs."""
        reach = -1
        stretches: list[list[int]] = []
        for buffer in sorted(buffers, key=lambda item: item.base):
            if not buffer.size or self._region(buffer)[2] >= 0:
                continue
            if stretches and buffer.base < reach:
                stretches[-1][1] = reach = max(reach, buffer.base + buffer.size)
            else:
                reach = buffer.base + buffer.size
                stretches.append([buffer.base, reach])
        for low, high in stretches:
            pages = ((high - 1) >> PAGE_BITS) - (low >> PAGE_BITS) + 1
            self._regions.append((low, high, self._add_pages(pages, DEFINED)))

    def _add_pages(self, count: int, untouched: int) -> int:
        assert self.state is not None
        first = self.state.pages.shape[0]
        fresh = np.full((count, 3), -1, np.int64)
        fresh[:, 1] = untouched
        self.state = self.state._replace(pages=np.concatenate([self.state.pages, fresh]))
        return first

    def _set_undefined(self, low: int, high: int) -> None:
        assert self.state is not None
        for region_low, region_high, page in self._regions:
            if region_low <= low < region_high:
                base = region_low >> PAGE_BITS << PAGE_BITS
                while low < min(high, region_high):
                    number = (low - base) >> PAGE_BITS
                    stop = min(high, region_high, base + ((number + 1) << PAGE_BITS))
                    set_undefined(
                        self.state.pages, self.state.segments, self.state.used, page + number, low, stop, NEVER_WRITTEN
                    )
                    low = stop

    def _add_cores(self, batch: Batch) -> None:
        """Pages for the on-chip memories that a batch touches for the first time."""
        assert self.state is not None
        if not batch.access.shape[1]:
            return
        buffer = batch.access_column("buffer")
        space, core = self._buffers[0, buffer], self._buffers[1, buffer]
        executing = batch.column("core")[batch.access_column("instruction") - batch.first]
        core = np.where(core < 0, executing, core)
        places = np.unique((core * len(Space) + space)[space != Space.GM])
        for place in places.tolist():
            where = divmod(place, len(Space))
            size = int(self.state.core_page[-1, where[1]])
            if size and self.state.core_page[where] < 0:
                spare = self._spare.get(where[1])
                page = spare.pop() if spare else self._add_pages(-(-size >> PAGE_BITS), NEVER_WRITTEN)
                self.state.core_page[where] = page

    def _recycle(self, ended: np.ndarray) -> None:
        """Take back the pages of cores whose kernel is over."""
        assert self.state is not None
        pages = self.state.core_page
        for core in np.flatnonzero(ended):
            for space in np.flatnonzero(pages[core] >= 0).tolist():
                self._spare.setdefault(space, []).append(int(pages[core, space]))
            pages[core] = -1

    # -- room ----------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Drop what nothing refers to; double the tables that are still too full."""
        assert self.state is not None
        state, used = self.state, self.state.used
        compact(state.pages, state.segments, state.marks, used, np.full(used[MARKS], -1, np.int64))
        changes: dict[str, Any] = {}
        if used[MARKS] + 2 * ROOM > state.marks.shape[0]:
            changes["marks"] = doubled(state.marks)
        if used[SEGMENTS] - used[SEGMENTS_FREE] + ROOM > state.segments.shape[0]:
            changes["segments"] = doubled(state.segments)
        if used[MESSAGES] + 4 > state.messages.shape[0]:
            changes["messages"] = doubled(state.messages)
        if state.history.shape[0] > 1 and used[HISTORY] + 600 > state.history.shape[0]:
            changes["history"] = doubled(state.history)
        if used[INDEXED] * 2 + 2048 > state.keys.shape[0]:
            changes["keys"] = np.zeros((state.keys.shape[0] * 4, 2), np.int64)
            rehash(state.keys, changes["keys"])
        self.state = state = state._replace(**changes)
        if state.foreign.shape[0] > 1 and used[FOREIGN_ROWS] + 600 > state.foreign.shape[0]:
            self._compact_foreign()

    def _compact_foreign(self) -> None:
        """Keep the foreign rows that an agent or a message still has."""
        assert self.state is not None
        state, used = self.state, self.state.used
        agents, messages = state.clock[:, :, FOREIGN], state.messages[: used[MESSAGES], len(PIPES)]
        history = state.history[: used[HISTORY], KNEW_FOREIGN]
        alive = np.unique(np.concatenate([[0], agents.reshape(-1), messages, history]))
        rows = state.foreign[alive]
        room = state.foreign.shape[0]
        while alive.size * 2 > room:
            room *= 2
        table = np.zeros((room, rows.shape[1]), np.int32)
        table[: alive.size] = rows
        agents[...] = np.searchsorted(alive, agents)
        messages[...] = np.searchsorted(alive, messages)
        history[...] = np.searchsorted(alive, history)
        used[FOREIGN_ROWS] = alive.size
        self.state = state._replace(foreign=table)
