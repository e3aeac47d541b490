"""`ascend_pytorch_profiler_<rank>.db`: the deliverables in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from npuscope.monitor.agent.processors.sqlite_schema import CONSTANT, GROUPS, MARK_OFFSET, NOT_AVAILABLE, NOT_KNOWN
from npuscope.monitor.agent.sources.torch_types import number_of_type
from npuscope.monitor.agent.trace.parsing import schema
from npuscope.monitor.agent.trace.parsing.communication import Communication
from npuscope.monitor.agent.trace.parsing.connections import connections
from npuscope.monitor.agent.trace.parsing.memory import blocks
from npuscope.monitor.agent.trace.parsing.model import ANNOTATION, CALLS, OPERATOR, Model
from npuscope.monitor.agent.trace.parsing.stacks import Stacks
from npuscope.monitor.agent.trace.parsing.tables import ALLOCATOR

Column = NDArray[Any]
Rows = Iterable[Sequence[Any]]


def write_database(path: Path, model: Model, transfers: Communication, stacks: Stacks) -> None:
    """Write the file. Raises sqlite3.Error and OSError."""
    contents = _Contents(model, transfers, stacks)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        # Nobody sees the file before it is whole.
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        for table, rows in contents.tables():
            _fill(database, table, rows)
        _fill(database, "STRING_IDS", enumerate(contents.strings()))
        database.execute("COMMIT")


def _fill(database: sqlite3.Connection, table: str, rows: Rows) -> None:
    stream = iter(rows)
    first = next(stream, None)
    if first is None:
        return
    database.execute(schema.create(table))
    database.execute(schema.insert(table), first)
    database.executemany(schema.insert(table), stream)


class _Contents:
    """The rows of every table."""

    def __init__(self, model: Model, transfers: Communication, stacks: Stacks) -> None:
        self.model = model
        self.transfers = transfers
        self.stacks = stacks
        self.links = connections(model)

    def strings(self) -> list[str]:
        """Texts by number, once every table has been asked for."""
        return self.model.trace.names.texts

    def tables(self) -> Iterator[tuple[str, Rows]]:
        """Every table but the strings."""
        yield from self._about()
        yield "PYTORCH_API", self._operators()
        yield "CONNECTION_IDS", zip(self.links.number.tolist(), self.links.connection.tolist(), strict=True)
        yield "PYTORCH_CALLCHAINS", self._stacks()
        steps = self.model.steps
        yield "STEP_TIME", zip(steps.number.tolist(), steps.start.tolist(), steps.end.tolist(), strict=True)
        yield "CANN_API", self._calls()
        yield "TASK", self._tasks()
        yield "COMPUTE_TASK_INFO", self._kernels()
        yield "COMMUNICATION_OP", self._transfers()
        yield "MSTX_EVENTS", self._marks()
        if len(self.model.trace.memory):
            yield "OP_MEMORY", self._blocks()
            yield "MEMORY_RECORD", self._memory()
        collections = self.model.extras.get("collections") or {}
        yield (
            "GC_RECORD",
            zip(
                collections.get("start", []),
                collections.get("end", []),
                (self._thread(thread) for thread in collections.get("thread", [])),
                strict=True,
            ),
        )
        use = self.model.extras.get("host") or {}
        times = use.get("time", [])
        every = [schema.EVERY_PROCESSOR] * len(times)
        yield "CPU_USAGE", zip(times, every, use["cpu"], strict=True) if "cpu" in use else ()
        yield "HOST_MEM_USAGE", zip(times, use["mem"], strict=True) if "mem" in use else ()

    def _about(self) -> Iterator[tuple[str, Rows]]:
        metadata = self.model.metadata
        about = list(CONSTANT["META_DATA"])
        if metadata.get(GROUPS):
            about.append((GROUPS, orjson.dumps(metadata[GROUPS]).decode()))
        if metadata.get("partial"):
            about.append(("partial", str(metadata["partial"])))
        yield "META_DATA", about
        yield "HOST_INFO", [(str(metadata.get("host_uid", "")), str(metadata.get("host", "")))]
        yield "SESSION_TIME_INFO", [(metadata.get("start_ns", 0), metadata.get("end_ns", 0))]
        devices = sorted(set(self.model.slices.process[self.model.kernels].tolist())) or [-1]
        yield "RANK_DEVICE_MAP", [(self.model.rank, device) for device in devices]
        yield from ((table, rows) for table, rows in CONSTANT.items() if table.startswith("ENUM_"))

    def _operators(self) -> Rows:
        model, slices = self.model, self.model.slices
        rows = np.setdiff1d(model.rows_of(OPERATOR, ANNOTATION), model.collective_annotations)
        rows = rows[np.argsort(slices.start[rows], kind="stable")]
        return zip(
            slices.start[rows].tolist(),
            slices.end[rows].tolist(),
            self._threads(slices.thread[rows]),
            _empty(self.links.of_row[rows]),
            slices.name[rows].tolist(),
            _empty(slices.sequence[rows]),
            _empty(slices.forward[rows]),
            _empty(slices.types[rows], 0),
            _empty(slices.shapes[rows], 0),
            _empty(self.stacks.of_row[rows]),
            [schema.OPERATOR_API] * len(rows),
            strict=True,
        )

    def _stacks(self) -> Rows:
        """Each stack once, the innermost function at depth 0."""
        for number in np.unique(self.stacks.of_row).tolist():
            if number >= 0:
                for depth, name in enumerate(self.stacks.frames(number)):
                    yield number, name, depth

    def _calls(self) -> Rows:
        rows, slices = self.model.rows_of(*CALLS), self.model.slices
        return zip(
            slices.start[rows].tolist(),
            slices.end[rows].tolist(),
            [schema.RUNTIME_API] * len(rows),
            self._threads(slices.thread[rows]),
            slices.correlation[rows].tolist(),
            slices.name[rows].tolist(),
            strict=True,
        )

    def _tasks(self) -> Rows:
        rows, slices = self.model.kernels, self.model.slices
        kinds = self.model.trace.names.numbers([self._kind(row) for row in slices.category[rows]])
        unset = [NOT_KNOWN] * len(rows)
        return zip(
            slices.start[rows].tolist(),
            slices.end[rows].tolist(),
            slices.process[rows].tolist(),
            slices.correlation[rows].tolist(),
            range(len(rows)),
            [self.model.pid] * len(rows),
            kinds.tolist(),
            unset,
            slices.thread[rows].tolist(),
            unset,
            unset,
            strict=True,
        )

    def _kernels(self) -> Rows:
        """Those that compute; `globalTaskId` is their place among the tasks."""
        model = self.model
        computing = np.flatnonzero(~model.communicating & np.isin(model.kernels, model.rows_of("kernel")))
        names = model.slices.name[model.kernels[computing]]
        kind, none = model.trace.names.numbers([self._kind_of_kernels, NOT_AVAILABLE]).tolist()
        rest = (NOT_KNOWN, NOT_KNOWN, kind, *[none] * 10)
        return ((name, task, *rest) for name, task in zip(names.tolist(), computing.tolist(), strict=True))

    def _transfers(self) -> Rows:
        transfers, slices = self.transfers, self.model.slices
        names = self.model.trace.names
        counts: dict[str, int] = {}
        for number, row in enumerate(transfers.row.tolist()):
            group, operation = transfers.group[number], transfers.operation[number]
            order = counts[group] = counts.get(group, -1) + 1
            yield (
                names.number(f"{operation}__{group or NOT_AVAILABLE}_{order}_1"),
                int(slices.start[row]),
                int(slices.end[row]),
                int(slices.correlation[row]),
                names.number(group or NOT_AVAILABLE),
                number,
                0,
                0,
                number_of_type(transfers.type[number]),
                names.number(NOT_AVAILABLE),
                int(transfers.items[number]),
                names.number(operation),
                int(transfers.device[number]),
            )

    def _marks(self) -> Rows:
        marks: Mapping[str, Any] = self.model.extras.get("marks") or {}
        names = self.model.trace.names
        for row, start in enumerate(marks.get("start", [])):
            yield (
                start,
                marks["end"][row],
                marks["type"][row],
                NOT_KNOWN,
                NOT_KNOWN,
                names.number(marks["message"][row]),
                self._thread(marks["thread"][row]),
                self._thread(marks["end_thread"][row]),
                names.number(marks["domain"][row]),
                marks["id"][row] + MARK_OFFSET,
            )

    def _blocks(self) -> Rows:
        found, memory = blocks(self.model), self.model.trace.memory
        freed = found.freed
        gone = freed >= 0
        nothing = [None] * len(found)
        return zip(
            found.name.tolist(),
            memory.bytes[found.taken].tolist(),
            memory.time[found.taken].tolist(),
            _where(gone, memory.time[freed]),
            nothing,
            _where(gone, memory.time[freed] - memory.time[found.taken]),
            nothing,
            memory.allocated[found.taken].tolist(),
            memory.reserved[found.taken].tolist(),
            nothing,
            _where(gone, memory.allocated[freed]),
            _where(gone, memory.reserved[freed]),
            nothing,
            nothing,
            memory.device[found.taken].tolist(),
            strict=True,
        )

    def _memory(self) -> Rows:
        memory = self.model.trace.memory
        order = np.argsort(memory.time, kind="stable")
        component = self.model.trace.names.number(ALLOCATOR)
        nothing = [None] * len(order)
        return zip(
            [component] * len(order),
            memory.time[order].tolist(),
            memory.allocated[order].tolist(),
            memory.reserved[order].tolist(),
            nothing,
            nothing,
            memory.device[order].tolist(),
            strict=True,
        )

    _kind_of_kernels = "KERNEL"

    def _kind(self, category: int) -> str:
        return self.model.trace.categories.texts[category].upper()

    def _thread(self, thread: int) -> int:
        return (self.model.pid << 32) | (thread & NOT_KNOWN)

    def _threads(self, threads: Column) -> list[int]:
        return ((self.model.pid << 32) | (threads & NOT_KNOWN)).tolist()


def _empty(values: Column, none: int = -1) -> list[int | None]:
    """Numbers, NULL where there is none."""
    return [None if value == none else value for value in values.tolist()]


def _where(keep: Column, values: Column) -> list[int | None]:
    return [value if there else None for value, there in zip(values.tolist(), keep.tolist(), strict=True)]
