"""Records as the rows that a database has of them (monitor formats, 4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Batch, Column
from npuscope.monitor.activity.kinds import Kind, Side
from npuscope.monitor.agent.processors.numbers import Numbers
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.processors.ranges import Ranges, instants, of_side
from npuscope.monitor.agent.processors.sqlite_ids import Ids
from npuscope.monitor.agent.processors.sqlite_schema import (
    API_TYPES,
    INSTANT,
    MARK_OFFSET,
    MARK_TASK,
    NOT_AVAILABLE,
    NOT_KNOWN,
    RANGE,
)
from npuscope.monitor.agent.processors.text_hash import group_digits

STEP_DOMAIN = "step"
"""Ranges of this domain are steps of the training; the number in a range's name is the step's."""
STORED = frozenset({*API_TYPES, Kind.KERNEL, Kind.COMMUNICATION, Kind.MARKER})
"""Kinds that a database has a place for."""


@dataclass(frozen=True)
class Rows:
    """Rows of one table. `form` is a row as SQL with a question mark for every column of `values`, which is int64
    (rows x columns); what is the same in all rows stands in the form itself, where it costs nothing."""

    table: str
    form: str
    values: Column
    records: int
    """How many records they stand for that no other rows do."""


class Writer:
    """Turns the records of a run into rows. For one thread at a time."""

    def __init__(self, run: Run, ids: Ids, numbers: Numbers) -> None:
        self.devices: set[int] = set()
        """Those on which something ran."""
        self.ranges = {Side.HOST: Ranges(), Side.DEVICE: Ranges()}
        self._run = run
        self._ids = ids
        self._numbers = numbers
        self._digits: dict[int, str] = {}
        self._steps = 0

    def rows(self, batch: Batch) -> Iterator[Rows]:
        """The rows of records of a kind in STORED."""
        if batch.kind in API_TYPES:
            yield self._calls(batch)
        elif batch.kind is Kind.KERNEL:
            yield from self._kernels(batch)
        elif batch.kind is Kind.COMMUNICATION:
            yield self._collectives(batch)
        elif batch.kind is Kind.MARKER:
            yield from self._host_marks(of_side(batch, Side.HOST))
            yield from self._device_marks(of_side(batch, Side.DEVICE))

    def _calls(self, batch: Batch) -> Rows:
        form = f"(?,?,{API_TYPES[batch.kind]},?,?,?)"
        name = self._ids.of(batch["name"])
        return _rows("CANN_API", form, batch["start"], batch["end"], _thread(batch), batch["correlation"], name)

    def _kernels(self, batch: Batch) -> Iterator[Rows]:
        name, kind = self._ids.of(batch["name"]), self._ids.of(batch["type"])
        task = self._numbers.tasks(len(batch))
        # A kernel's device counts, as a collective's does, even where it is none.
        self._saw(batch["device"])
        times = batch["start"], batch["end"]
        yield self._tasks(*times, batch["device"], batch["correlation"], task, kind, batch["stream"])
        absent = ",".join([str(self._ids.text(NOT_AVAILABLE))] * 10)
        form = f"(?,?,{NOT_KNOWN},{NOT_KNOWN},?,{absent})"
        yield _rows("COMPUTE_TASK_INFO", form, name, task, kind, records=0)

    def _tasks(
        self, start: Column, end: Column, device: Column, connection: Column, task: Column, kind: Column,
        stream: Column, records: int | None = None,
    ) -> Rows:  # fmt: skip
        form = f"(?,?,?,?,?,{self._run.pid},?,{NOT_KNOWN},?,{NOT_KNOWN},{NOT_KNOWN})"
        return _rows("TASK", form, start, end, device, connection, task, kind, stream, records=records)

    def _collectives(self, batch: Batch) -> Rows:
        group = self._ids.of(batch["comm"])
        name = self._ids.once(self._places(batch))
        algorithm, operation = self._ids.of(batch["algorithm"]), self._ids.of(batch["name"])
        self._saw(batch["device"])
        return _rows(
            "COMMUNICATION_OP", "(?,?,?,?,?,?,0,0,?,?,?,?,?)", name, batch["start"], batch["end"],
            batch["correlation"], group, self._numbers.operations(len(batch)), batch["data_type"], algorithm,
            batch["count"], operation, batch["device"],
        )  # fmt: skip

    def _places(self, batch: Batch) -> list[str]:
        """The name of each collective with its group and its place in it: `<name>_<digits>_<place>_1`."""
        texts = self._run.strings.texts
        place = np.empty(len(batch), np.int64)
        for group in np.unique(batch["comm"]).tolist():
            mine = np.flatnonzero(batch["comm"] == group)
            place[mine] = self._numbers.in_group(texts[group], len(mine))
            self._digits.setdefault(group, group_digits(texts[group]))
        each = zip(batch["name"].tolist(), batch["comm"].tolist(), place.tolist(), strict=True)
        return [f"{texts[name]}_{self._digits[group]}_{number}_1" for name, group, number in each]

    def _host_marks(self, batch: Batch) -> Iterator[Rows]:
        moments = instants(batch)
        if len(moments):
            yield self._events(INSTANT, moments, moments)
        starts, ends = self.ranges[Side.HOST].pair(batch)
        if len(starts):
            yield self._events(RANGE, starts, ends)
            yield from self._step_times(starts, ends)

    def _events(self, what: int, start: Batch, end: Batch) -> Rows:
        return _rows(
            "MSTX_EVENTS", f"(?,?,{what},{NOT_KNOWN},{NOT_KNOWN},?,?,?,?,?)", start["time"], end["time"],
            self._ids.of(start["name"]), _thread(start), _thread(end), self._ids.of(start["domain"]),
            _connection(start), records=len(start) if start is end else 2 * len(start),
        )  # fmt: skip

    def _step_times(self, starts: Batch, ends: Batch) -> Iterator[Rows]:
        texts = self._run.strings.texts
        domains = np.unique(starts["domain"]).tolist()
        mine = np.flatnonzero(np.isin(starts["domain"], [one for one in domains if texts[one] == STEP_DOMAIN]))
        if len(mine):
            step = np.array([self._step(texts[name]) for name in starts["name"][mine].tolist()], np.int64)
            yield _rows("STEP_TIME", "(?,?,?)", step, starts["time"][mine], ends["time"][mine], records=0)

    def _step(self, name: str) -> int:
        found = re.findall(r"\d{1,18}", name, re.ASCII)
        self._steps = int(found[-1]) if found else self._steps + 1
        return self._steps

    def _device_marks(self, batch: Batch) -> Iterator[Rows]:
        moments = instants(batch)
        if len(moments):
            yield self._marked(moments, moments)
        starts, ends = self.ranges[Side.DEVICE].pair(batch)
        if len(starts):
            self._saw(ends["device"])
            yield self._marked(starts, ends)

    def _marked(self, start: Batch, end: Batch) -> Rows:
        count = len(start)
        kind = np.full(count, self._ids.text(MARK_TASK))
        place = end["device"], _connection(end), self._numbers.tasks(count)
        records = count if start is end else 2 * count
        return self._tasks(start["time"], end["time"], *place, kind, end["stream"], records=records)

    def _saw(self, devices: Column) -> None:
        if len(devices) and not ((devices == devices[0]).all() and int(devices[0]) in self.devices):
            self.devices.update(np.unique(devices).tolist())


def _rows(table: str, form: str, *columns: Column, records: int | None = None) -> Rows:
    """64 bits without a sign are written as the same bits with one, as the vendor's plug-in does."""
    count = len(columns[0])
    values = np.empty((count, len(columns)), np.int64)
    for place, column in enumerate(columns):
        values[:, place] = column.view(np.int64) if column.dtype == np.uint64 else column
    return Rows(table, form, values, count if records is None else records)


def _thread(batch: Batch) -> Column:
    """`globalTid`: the process above, the thread below."""
    return batch["process"] << 32 | batch["thread"] & NOT_KNOWN


def _connection(batch: Batch) -> Column:
    return batch["id"] + np.uint64(MARK_OFFSET)
