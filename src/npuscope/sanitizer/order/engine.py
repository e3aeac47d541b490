"""Drives the sweep over a trace: grows tables, lays out pages, hands out what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.sanitizer.order.events import CROSSING, SLOT_OF_PIPE, Tables as OpcodeTables
from npuscope.sanitizer.order.runs import Runs, explicit_runs
from npuscope.sanitizer.order.shadow import NOW, compact, set_undefined
from npuscope.sanitizer.order.state import (
    CROWDED,
    DEFINED,
    DETAILS,
    FOREIGN_ROWS,
    MARKS,
    MESSAGES,
    NEVER_WRITTEN,
    PAGE_BITS,
    PAIRS,
    READS,
    ROOM,
    SEGMENTS,
    SEGMENTS_FREE,
    State,
    doubled,
    new_state,
)
from npuscope.sanitizer.order.sweep import Tables, sweep
from npuscope.sanitizer.order.table import new_table, rehash
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Buffer, CoreType, Space

MOST_AGENTS = 512 * 7
"""Agents of a launch whose cores synchronise, at most: what each knows of all others is a row of that length."""


@dataclass(frozen=True, slots=True)
class Side:
    """One access as the tables keep it: who made it, and columns of its rows."""

    role: int
    core: int
    pipe: int
    site: int
    opcode: int
    address: int
    footprint: int
    buffer: int
    row: int


def side_of(numbers: np.ndarray) -> Side:
    """A role, an agent and a detail, as a side."""
    role, agent, *detail = (int(number) for number in numbers)
    return Side(role, agent // 7, agent % 7, *detail)


class Hazards:
    """Finds unordered accesses (`pairs`) and uses of bytes never written (`reads`) in the launch that is going on."""

    def __init__(self, races: bool = True, undefined: bool = True) -> None:
        self.races = races
        self.undefined = undefined
        self.crowded = 0  # what was not kept because a table was full, in all launches
        self.unordered: list[str] = []  # kernels with more synchronised cores than are followed
        self._runs = Runs()
        self._opcodes = OpcodeTables()
        self._begin_tables()

    def _begin_tables(self) -> None:
        self._buffers: list[Buffer] = []
        self._space = self._core = self._page = self._low = self._high = np.empty(0, np.int64)
        self._regions: list[tuple[int, int, int]] = []
        self._spare: dict[int, list[int]] = {}
        self._follow = self.races
        self.state: State | None = None

    @property
    def pairs(self) -> np.ndarray:
        """The launch's pairs so far, (n, PAIR)."""
        return self.state.pairs[: self.state.used[PAIRS]] if self.state else np.empty((0, 0), np.int64)

    @property
    def reads(self) -> np.ndarray:
        """The launch's uses of bytes never written so far, (n, READ_ROW)."""
        return self.state.reads[: self.state.used[READS]] if self.state else np.empty((0, 0), np.int64)

    def origin(self, number: int) -> Side:
        """The first read of bytes never written that later uses go back to."""
        assert self.state is not None
        return side_of(self.state.origins[number])

    # -- a batch -------------------------------------------------------------------------------------------------

    def check(self, batch: Batch) -> None:
        """Go through a batch."""
        if batch.first == 0:
            self._begin(batch)
        self._runs.grow()
        self._opcodes.grow()
        self._provide(batch)
        tables = self._tables(batch)
        now, ended = np.zeros(NOW, np.int64), np.zeros(len(batch.launch.cores), np.bool_)
        row = access = 0
        while row < batch.instruction.shape[1]:
            assert self.state is not None
            row, access = sweep(self.state, tables, row, access, now, ended)
            if row < batch.instruction.shape[1]:
                self._make_room()
        self._recycle(ended)
        if batch.last and self.state is not None:
            self.crowded += int(self.state.used[CROWDED])
            self.state.used[CROWDED] = 0

    def _begin(self, batch: Batch) -> None:
        self._begin_tables()
        launch = batch.launch
        state = self.state = new_state(len(launch.cores), len(Space))
        for space, size in launch.capacity.items():
            state.capacity[space] = size
        if launch.options.get("auto_sync", "True") != "False":
            state.auto[:] = [core.type is CoreType.AIV for core in launch.cores]

    def _tables(self, batch: Batch) -> Tables:
        runs = self._runs
        explicit, lowest = explicit_runs(batch)
        return Tables(
            batch.instruction, batch.access, batch.first, self._opcodes.action, self._opcodes.use, SLOT_OF_PIPE,
            runs.first, runs.start, runs.end, runs.ordered_first, runs.ordered_start, runs.ordered_end,
            explicit.first, explicit.start, explicit.end, lowest,
            self._space, self._core, self._page, self._low, self._high,
            batch.launch.arch == "3510", self._follow, self.undefined,
        )

    # -- where memory is -----------------------------------------------------------------------------------------

    def _provide(self, batch: Batch) -> None:
        """Make sure that everything a batch names has tables: buffers, pages, clocks between cores."""
        fresh = batch.buffers[len(self._buffers) :]
        if fresh:
            self._buffers.extend(fresh)
            self._add_buffers(fresh)
        self._add_cores(batch)
        if self._follow and self.state is not None and self.state.foreign_rows.shape[0] == 1:
            actions = self._opcodes.action[np.unique(batch.column("opcode"))]
            if np.isin(actions, [int(action) for action in CROSSING]).any():
                self._follow_cores(batch)

    def _follow_cores(self, batch: Batch) -> None:
        assert self.state is not None
        agents = self.state.foreign_rows.shape[1]
        if agents > MOST_AGENTS:
            self._follow = False
            self.unordered.append(batch.launch.kernel)
            return
        rows = min(max((1 << 24) // agents, 256), 4096)
        self.state = self.state._replace(foreign_rows=np.zeros((rows, agents), np.int32))

    def _add_buffers(self, fresh: list[Buffer]) -> None:
        assert self.state is not None
        self._add_regions([buffer for buffer in fresh if buffer.space is Space.GM])
        places = np.array([self._region(buffer) for buffer in fresh], np.int64).reshape(-1, 3)
        self._space = np.append(self._space, [int(buffer.space) for buffer in fresh])
        self._core = np.append(self._core, [buffer.core for buffer in fresh])
        self._low, self._high, self._page = (
            np.append(known, places[:, column]) for column, known in enumerate((self._low, self._high, self._page))
        )
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
        state = self.state
        first = state.heads.size
        self.state = state._replace(
            heads=np.append(state.heads, np.full(count, -1, np.int32)),
            untouched=np.append(state.untouched, np.full(count, untouched, np.int32)),
        )
        return first

    def _set_undefined(self, low: int, high: int) -> None:
        assert self.state is not None
        for region_low, region_high, page in self._regions:
            if region_low <= low < region_high:
                base = region_low >> PAGE_BITS << PAGE_BITS
                while low < min(high, region_high):
                    number = (low - base) >> PAGE_BITS
                    stop = min(high, region_high, base + ((number + 1) << PAGE_BITS))
                    set_undefined(self.state, page + number, low, stop, NEVER_WRITTEN)
                    low = stop

    def _add_cores(self, batch: Batch) -> None:
        """Pages for the on-chip memories that a batch touches for the first time."""
        assert self.state is not None
        if not batch.access.shape[1]:
            return
        buffer = batch.access_column("buffer")
        space, core = self._space[buffer], self._core[buffer]
        executing = batch.column("core")[batch.access_column("instruction") - batch.first]
        core = np.where(core < 0, executing, core)
        places = np.unique((core * len(Space) + space)[space != Space.GM])
        for place in places.tolist():
            where = divmod(place, len(Space))
            size = int(self.state.capacity[where[1]])
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
        compact(state)
        changes: dict[str, Any] = {}
        if used[MARKS] + 2 * ROOM > state.mark_next.size:
            names = ("mark_detail", "mark_clock", "mark_agent", "mark_role", "mark_next")
            changes.update({name: doubled(getattr(state, name)) for name in names})
        if used[SEGMENTS] - used[SEGMENTS_FREE] + ROOM > state.segment_next.size:
            names = ("segment_start", "segment_end", "segment_next", "segment_mark", "segment_undefined")
            changes.update({name: doubled(getattr(state, name)) for name in names})
        if used[DETAILS] * 2 > state.details.shape[0]:
            changes["details"] = doubled(state.details)
        if used[MESSAGES] + 4 > state.message_foreign.size:
            changes["message_known"] = doubled(state.message_known)
            changes["message_foreign"] = doubled(state.message_foreign)
            keys, slots = new_table(state.message_keys.size * 2)
            rehash(state.message_keys, state.message_slots, keys, slots)
            changes["message_keys"], changes["message_slots"] = keys, slots
        self.state = state = state._replace(**changes)
        if used[FOREIGN_ROWS] > 1 and used[FOREIGN_ROWS] + 24 > state.foreign_rows.shape[0]:
            self._compact_foreign()

    def _compact_foreign(self) -> None:
        """Keep the foreign rows that an agent or a message still has."""
        assert self.state is not None
        state, used = self.state, self.state.used
        messages = state.message_foreign[: used[MESSAGES]]
        alive = np.unique(np.concatenate([[0], state.foreign.reshape(-1), messages]))
        rows = state.foreign_rows[alive]
        room = state.foreign_rows.shape[0]
        while alive.size * 2 > room:
            room *= 2
        table = np.zeros((room, rows.shape[1]), np.int32)
        table[: alive.size] = rows
        state.foreign[...] = np.searchsorted(alive, state.foreign)
        messages[...] = np.searchsorted(alive, messages)
        used[FOREIGN_ROWS] = max(alive.size, 2)
        self.state = state._replace(foreign_rows=table)
