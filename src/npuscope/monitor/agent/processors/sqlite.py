"""A SQLite database for each run, readable at any time and after any end of the process."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Kind, Side
from npuscope.monitor.agent.processors.early import Early
from npuscope.monitor.agent.processors.host import host_name, host_number
from npuscope.monitor.agent.processors.numbers import PROCESS, Numbers
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.processors.sqlite_file import File, Tables
from npuscope.monitor.agent.processors.sqlite_ids import Ids
from npuscope.monitor.agent.processors.sqlite_rows import STORED, Rows, Writer
from npuscope.monitor.agent.processors.sqlite_schema import GROUPS, UNKNOWN_NPU
from npuscope.monitor.agent.processors.wanted import Wanted

EARLY_RECORDS = 100_000
"""Records that are written without waiting for a report, so that a long interval needs no more memory."""
MOST_BYTES = 256 << 20
"""Of records that wait, as many as the vendor's buffers hold; what comes while they are full is lost and counted."""
LAST_TRIES, PAUSE_SECONDS = 2, 0.5
"""At the end nothing can be left for a next cycle."""
NO_DEVICE = -1
FULL, HALF, UNWRITTEN = "beyond what may wait for the disk", "ranges that lack a half", "could not be written"


class Database:
    """Writes a cycle at every report, in one transaction, and in between when much has come. What a failed cycle
    could not write is written by the next one that can."""

    def __init__(
        self, folder: str | Path, run: Run, *, numbers: Numbers = PROCESS, early: int = EARLY_RECORDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:  # fmt: skip
        self._run = run
        self._early = early
        self._most_bytes = most_bytes
        self._ids = Ids(run.strings)
        self._writer = Writer(run, self._ids, numbers)
        self._file = File(Path(folder).absolute(), run)
        self._wanted = Wanted(run, "databases", STORED)
        self._lock = threading.Lock()  # held for moments only
        self._new: list[Batch] = []
        self._new_records = self._new_bytes = self._row_bytes = 0
        self._counts: Counter[str] = Counter()
        self._cycle = threading.Lock()  # held while a cycle is written
        self._rows: list[Rows] = []
        self._between = Early("npuscope-database", lambda: self._run_cycle(time.time_ns()))

    @property
    def path(self) -> Path | None:
        """The file, once there is one."""
        return self._file.path

    def add(self, batch: Batch) -> None:
        """Take a batch."""
        batch = self._wanted.of(batch)
        if not len(batch):
            return
        size = sum(column.nbytes for column in batch.columns.values())
        with self._lock:
            if self._new_bytes + self._row_bytes + size > self._most_bytes:
                self._counts[FULL] += len(batch)
                return
            self._new.append(batch)
            self._new_bytes += size
            self._new_records += len(batch)
            much = self._new_records >= self._early
        if much:
            self._between.wake()

    def report(self, now: int) -> None:
        """Write what waits. Raises OSError or sqlite3.Error; then it waits on."""
        self._run_cycle(now)
        self._between.allow()

    def close(self) -> None:
        """Write the rest, and close the file. What cannot be written now is lost, and counted."""
        self._between.close()
        try:
            self._run_last_cycle()
        except (OSError, sqlite3.Error):
            with self._lock:
                self._counts[UNWRITTEN] += sum(rows.records for rows in self._rows)
            raise
        finally:
            self._rows = []
            with contextlib.suppress(sqlite3.Error):
                self._file.close()

    @property
    def counts(self) -> Mapping[str, int]:
        """Records written and dropped, by reason."""
        ranges = self._writer.ranges[Side.HOST]
        halves = ranges.given_up + (ranges.open if self._run.ended else 0)
        with self._lock:
            return +(self._counts + Counter(self._wanted.counts) + Counter({HALF: halves}))

    def _run_last_cycle(self) -> None:
        for _ in range(LAST_TRIES - 1):
            try:
                return self._run_cycle(self._run.ended)
            except (OSError, sqlite3.Error):
                time.sleep(PAUSE_SECONDS)
        return self._run_cycle(self._run.ended)

    def _run_cycle(self, now: int) -> None:
        with self._cycle:
            self._convert()
            if self._file.missing:
                self._run.warn(f"{self._file.path} has been taken away: what comes now goes into a new database")
                self._file.close()
                self._ids.again()
            if self._rows or self._file.path:
                self._write(now)

    def _convert(self) -> None:
        """Columns to rows: outside of the transaction, which is short that way."""
        with self._lock:
            new, self._new = self._new, []
            self._new_records = 0
        by_kind: dict[Kind, list[Batch]] = {}
        for batch in new:
            by_kind.setdefault(batch.kind, []).append(batch)
        for batches in by_kind.values():
            self._rows += self._writer.rows(joined(batches))
        converted = sum(column.nbytes for batch in new for column in batch.columns.values())
        with self._lock:
            self._new_bytes -= converted
            self._row_bytes = sum(rows.values.nbytes for rows in self._rows)

    def _write(self, now: int) -> None:
        self._file.write(self._ids.new, self._rows, self._state(now), self._host)
        with self._lock:
            self._counts["written"] += sum(rows.records for rows in self._rows)
            self._row_bytes = 0
        self._ids.new, self._rows = [], []

    def _state(self, now: int) -> Tables:
        """What changes as the run goes on; the tables hold the newest."""
        devices = sorted(self._writer.devices) or [NO_DEVICE]
        state: dict[str, list[tuple[object, ...]]] = {
            "SESSION_TIME_INFO": [(self._run.started, self._run.ended or now)],
            "RANK_DEVICE_MAP": [(self._run.rank, device) for device in devices],
            "NPU_INFO": [(device, UNKNOWN_NPU) for device in devices],
        }
        if self._run.groups:
            state["META_DATA"] = [(GROUPS, self._run.groups)]
        return state

    @staticmethod
    def _host() -> Tables:
        return {"HOST_INFO": [(host_number(), host_name())]}
