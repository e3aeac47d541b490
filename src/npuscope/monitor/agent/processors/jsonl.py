"""JSON lines in files that rotate."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import numpy as np
import orjson

from npuscope import __version__
from npuscope.monitor.activity.batch import Batch, joined
from npuscope.monitor.activity.kinds import Side
from npuscope.monitor.agent.processors.host import host_name, host_number
from npuscope.monitor.agent.processors.jsonl_files import Files
from npuscope.monitor.agent.processors.jsonl_settings import read_settings
from npuscope.monitor.agent.processors.jsonl_sheets import WRITTEN, Sheets
from npuscope.monitor.agent.processors.jsonl_text import Scribe, Sheet
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.processors.wanted import Wanted

ENOUGH = 256
"""Records that are not kept waiting, if more wait."""
LINES_AT_ONCE = 8192
"""That are made and written between two turns of other threads."""
PAUSE_SECONDS = 1.0
"""After the disk took nothing."""
STOP_SECONDS = 30.0
GROUPS = "parallel_group_info"
SCHEMA = 1
"""Of the lines, in the header."""
FULL, HALF, UNWRITTEN = "beyond what may wait for the disk", "ranges that lack a half", "could not be written"


class JsonLines:
    """Records wait in a queue of bounded length and are written by a thread of its own. When the queue is full, what
    comes is lost and counted; what the disk does not take stays in the queue."""

    def __init__(
        self, folder: str | Path, run: Run, rotate_lines: str | int = "", rotate_files: str | int = ""
    ) -> None:
        """The two numbers as the command says them; empty: as the environment says."""
        self._run = run
        self._settings = read_settings(run.warn, str(rotate_lines), str(rotate_files))
        self._wanted = Wanted(run, "JSON lines", WRITTEN)
        self._sheets = Sheets(run.strings)
        self._scribe = Scribe(run.strings)
        self._files = Files(Path(folder).absolute(), run, self._settings, self._header)
        self._changed = threading.Condition()
        self._new: deque[Batch] = deque()
        self._waiting = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._dumping = threading.Lock()
        self._ready: deque[Sheet] = deque()
        self._counts: Counter[str] = Counter()

    @property
    def files(self) -> list[Path]:
        """Those that have been written and are kept, oldest first."""
        return list(self._files.written)

    def add(self, batch: Batch) -> None:
        """Take a batch."""
        batch = self._wanted.of(batch)
        if not len(batch):
            return
        with self._changed:
            room = self._settings.capacity - self._waiting
            if len(batch) > room:
                self._counts[FULL] += len(batch) - room
                if room == 0:
                    return
                batch = batch.where(np.arange(room))
            self._new.append(batch)
            self._waiting += len(batch)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name="IPCMonitor", daemon=True)
                self._thread.start()
            if self._waiting > ENOUGH:
                self._changed.notify()

    def report(self, now: int) -> None:
        """Write what waits. Raises OSError; then it waits on."""
        self._dump()

    def close(self) -> None:
        """Write the rest and the closing lines. What cannot be written now is lost, and counted."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        try:
            self._dump()
            for line in self._trailers():
                self._files.write(line, 1)
        except OSError:
            with self._changed:
                self._counts[UNWRITTEN] += self._waiting
            raise
        finally:
            with contextlib.suppress(OSError):
                self._files.close()
            if lost := self._counts[FULL] + self._counts[UNWRITTEN]:
                self._run.warn(f"{lost} records are missing in the JSON lines: the disk did not take them in time")

    @property
    def counts(self) -> Mapping[str, int]:
        """Records written and dropped, by reason."""
        ranges = self._sheets.ranges[Side.HOST]
        halves = ranges.given_up + (ranges.open if self._run.ended else 0)
        with self._changed:
            return +(self._counts + Counter(self._wanted.counts) + Counter({HALF: halves}))

    def _serve(self) -> None:
        interval = self._settings.interval / 1000
        pause = 0.0
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, pause)
                self._changed.wait_for(lambda: self._closed or self._waiting > 0, interval)
                self._changed.wait_for(lambda: self._closed or self._waiting > ENOUGH, interval)
            if self._closed:
                return
            try:
                self._dump()
                pause = 0.0
            except Exception:  # the next report meets it too, and tells of it
                pause = PAUSE_SECONDS

    def _dump(self) -> None:
        with self._dumping:
            self._convert()
            while self._ready:
                sheet = self._ready[0]
                count = min(LINES_AT_ONCE, self._files.room, sheet.count)
                self._files.write(self._scribe.text(sheet.part(0, count)), count)
                if count < sheet.count:
                    self._ready[0] = sheet.part(count, sheet.count)
                else:
                    self._ready.popleft()
                with self._changed:
                    self._waiting -= count
                    self._counts["written"] += count

    def _convert(self) -> None:
        with self._changed:
            new, self._new = self._new, deque()
        sheets: list[Sheet] = []
        for _, batches in groupby(new, lambda batch: batch.kind):
            sheets += self._sheets.of(joined(list(batches)))
        self._ready += sheets
        with self._changed:  # the two records of a range are one line
            self._waiting += sum(sheet.count for sheet in sheets) - sum(map(len, new))

    def _header(self) -> bytes:
        return _line({
            "host": host_name(),
            "hostUid": host_number(),
            "kind": "header",
            "pid": self._run.pid,
            "rank": self._run.rank,
            "schema": SCHEMA,
            "startNs": self._run.started,
            "version": f"npuscope {__version__}",
        })  # fmt: skip

    def _trailers(self) -> Iterator[bytes]:
        if self._run.groups:
            yield _line({"kind": GROUPS, "value": self._run.groups})
        if self._sheets.devices:
            devices = sorted(self._sheets.devices)
            yield _line({"device": devices, "kind": "rank_device_map", "rank": self._run.rank})


def _line(values: Mapping[str, object]) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
