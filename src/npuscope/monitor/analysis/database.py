"""A rank's SQLite file, of the monitor or of the profiler: the same tables, the columns found by name."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.activity.kinds import DATA_TYPES
from npuscope.monitor.analysis.computing import computing, host_operators, outermost
from npuscope.monitor.analysis.records import Collectives, Group, Marked, Ranges, Records, Unreadable
from npuscope.monitor.analysis.steps import labelled, marked

RANGES = (1, 2)
"""Values of MSTX_EVENTS.eventType that stand for ranges: push/pop, start/end."""
STEP_DOMAIN, DEVICE_MARK = "step", "mstx"
GROUPS = "parallel_group_info"
NO_NAMES = "no STRING_IDS, without which no name is known: its process was killed"
SIZES = {
    **dict.fromkeys(("INT8", "UINT8", "HIF8", "FP8E4M3", "FP8E5M2", "FP8E8M0"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FP16", "BFP16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FP64"), 8),
    "INT128": 16,
}
"""Bytes of an element by its type's name."""
_SIZE_OF_NUMBER = np.zeros(max(DATA_TYPES) + 1, np.int64)
_SIZE_OF_NUMBER[list(DATA_TYPES)] = [SIZES.get(name, 0) for name in DATA_TYPES.values()]


def read_database(path: Path, rank: int, pid: int) -> Records:
    """A rank's records. Raises Unreadable for a file that no names or no records can be had from."""
    try:
        with _opened(path) as db:
            return _Reader(db, Records(rank, pid, str(path))).read()
    except (sqlite3.Error, OSError, ValueError) as error:
        raise Unreadable(str(error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.stat().st_size:
        raise Unreadable("the file is empty")
    name = f"file:{quote(str(path.resolve()))}?mode=ro"
    with closing(sqlite3.connect(name, uri=True)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield db
            return
        except sqlite3.OperationalError:
            # A file with a write-ahead log in a folder where nothing may be made.
            if not Path(f"{path}-wal").exists():
                raise
    with closing(sqlite3.connect(name + "&immutable=1", uri=True)) as db:
        yield db


class _Reader:
    """Fills in one rank's records."""

    def __init__(self, db: sqlite3.Connection, records: Records) -> None:
        self.db, self.records = db, records
        self.tables = {
            table: [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }

    def read(self) -> Records:
        records = self.records
        records.strings = dict(self._rows("STRING_IDS", "id", "value"))
        if not records.strings:
            raise Unreadable(NO_NAMES)
        records.host = next((str(name) for (name,) in self._rows("HOST_INFO", "hostName") if name), "")
        records.device = next((device for (device,) in self._rows("RANK_DEVICE_MAP", "deviceId")), -1)
        records.groups = self._groups()
        records.kernels = computing(self._kernels(), records.strings)
        if not len(records.kernels) and records.device < 0:
            records.kernels = self._host_operators()
        records.steps = self._steps()
        records.collectives = self._collectives()
        if not len(records.kernels) and not len(records.collectives):
            raise Unreadable("neither kernels nor collectives are in it")
        return records

    def _rows(self, table: str, *columns: str) -> list[tuple]:
        if not set(columns) <= set(self.tables.get(table, ())):
            return []
        return self.db.execute(f'SELECT {", ".join(columns)} FROM "{table}"').fetchall()

    def _columns(self, table: str, *columns: str, needs: Sequence[str] = (), where: str = "") -> list[Column]:
        """Whole columns as int64; no rows where the table lacks one of them, or one that `where` needs; what is NULL
        is -1.

        SQLite writes a column as one text and numpy reads it: five times as fast as rows of Python integers.
        """
        if not {*columns, *needs} <= set(self.tables.get(table, ())):
            return [np.zeros(0, np.int64) for _ in columns]
        words = ", ".join(f"group_concat(CAST(coalesce({column}, -1) AS INTEGER))" for column in columns)
        texts = self.db.execute(f'SELECT {words} FROM "{table}" {where}').fetchone()
        return [np.fromstring(text or "", np.int64, sep=",") for text in texts]

    def _groups(self) -> dict[str, Group]:
        text = next((value for name, value in self._rows("META_DATA", "name", "value") if name == GROUPS), None)
        return read_groups(text)

    def _kernels(self) -> Ranges:
        start, end, task = self._columns("TASK", "startNs", "endNs", "globalTaskId")
        name, of = self._columns("COMPUTE_TASK_INFO", "name", "globalTaskId")
        if not len(of) or not len(task):
            return Ranges()
        order = np.argsort(of, kind="stable")
        at = np.minimum(np.searchsorted(of[order], task), len(of) - 1)
        info = order[at]
        keep = of[info] == task
        return Ranges(start[keep], end[keep], name[info[keep]])

    def _host_operators(self) -> Ranges:
        """Operators of a job without a card."""
        which = ", ".join(map(str, host_operators(self.records.strings)))
        start, end, thread, name = self._columns(
            "CANN_API", "startNs", "endNs", "globalTid", "name", where=f"WHERE name IN ({which})"
        )
        return outermost(Ranges(start, end, name), thread)

    def _collectives(self) -> Collectives:
        start, end, of, name, comm, count, kind = self._columns(
            "COMMUNICATION_OP", "startNs", "endNs", "connectionId", "opType", "groupName", "count", "dataType"
        )
        if not len(start):
            return Collectives()
        size = _SIZE_OF_NUMBER[np.clip(kind, 0, len(_SIZE_OF_NUMBER) - 1)]
        found = Collectives(start, end, name, comm, np.maximum(count, 0) * size, self._launched(of, start))
        return found.where(np.argsort(start, kind="stable"))

    def _launched(self, of: Column, start: Column) -> Column:
        """When the host called each collective, 0 where that is not known; only host marks ask for it."""
        if self.records.steps.on_device or not len(self.records.steps):
            return np.zeros(len(of), np.int64)
        call, began = self._columns("CANN_API", "connectionId", "startNs")
        # Of several calls with one number (node and library) the first to begin is the program's.
        order = np.lexsort((began, call))
        call, began = call[order], began[order]
        if not len(call):
            return np.zeros(len(of), np.int64)
        at = np.minimum(np.searchsorted(call, of), len(call) - 1)
        return np.where((call[at] == of) & (of > 0) & (began[at] <= start), began[at], 0)

    def _steps(self) -> Marked:
        if len(found := self._marks()):
            return found
        label, start, end = self._columns("STEP_TIME", "id", "startNs", "endNs")
        return marked(label, start, end, "STEP_TIME", on_device=False)

    def _marks(self) -> Marked:
        start, end, kind, name, domain, connection = self._columns(
            "MSTX_EVENTS", "startNs", "endNs", "eventType", "message", "domainId", "connectionId"
        )
        label = labelled(self.records.strings, name)
        steps = np.isin(kind, RANGES) & (label >= 0) & (end >= start)
        own = [number for number, text in self.records.strings.items() if text == STEP_DOMAIN]
        if np.any(steps & np.isin(domain, own)):
            steps &= np.isin(domain, own)
        return self._on_device(label[steps], start[steps], end[steps], connection[steps])

    def _on_device(self, label: Column, start: Column, end: Column, connection: Column) -> Marked:
        """The device's side of the marks, where every mark has one."""
        kinds = [number for number, text in self.records.strings.items() if text.lower() == DEVICE_MARK]
        marks = f"WHERE taskType IN ({', '.join(map(str, kinds))})"
        began, ended, of = self._columns("TASK", "startNs", "endNs", "connectionId", needs=("taskType",), where=marks)
        order = np.argsort(of, kind="stable")
        began, ended, of = began[order], ended[order], of[order]
        if len(label) and len(of):
            at = np.minimum(np.searchsorted(of, connection), len(of) - 1)
            if np.all(of[at] == connection):
                return marked(label, began[at], ended[at], "step marks on the device", on_device=True)
        return marked(label, start, end, "step marks on the host", on_device=False)


def read_groups(text: object) -> dict[str, Group]:
    """Communicators from `parallel_group_info`; what cannot be read says nothing."""
    found: dict[str, Group] = {}
    with suppress(ValueError, TypeError, AttributeError):
        for name, about in json.loads(str(text or "{}")).items():
            ranks = tuple(int(rank) for rank in about.get("global_ranks", ()))
            found[name] = Group(str(about.get("group_name", "")), ranks)
    return found
