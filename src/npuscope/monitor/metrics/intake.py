"""The thread that takes the plug-in's measurements from where the reader laid them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from npuscope.monitor.daemon.inbox import Inbox, Letter
from npuscope.monitor.metrics.attribution import Senders
from npuscope.monitor.metrics.plugin import BadData, parse
from npuscope.monitor.metrics.process import Subject
from npuscope.monitor.metrics.record import Record

BATCH = 256
EVERY = 100
"""Of so many bad messages one is written to the log."""
MOST_SENDERS = 1024
REMEMBERED_SECONDS = 600.0
STOP_SECONDS = 5.0


class Intake:
    """Turns messages into records and hands them on."""

    def __init__(self, inbox: Inbox, emit: Callable[[list[Record]], None], note: Callable[[str], None]) -> None:
        self.bad = 0
        self._inbox = inbox
        self._emit = emit
        self._note = note
        self._senders = Senders()
        self._seen: dict[int, tuple[float, Subject]] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="metrics-data", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, once what lies there has been taken."""
        self._inbox.close()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def subjects(self) -> list[Subject]:
        """The processes that sent something lately. Not all of them register: of the vendor's ranks only one does."""
        now = time.monotonic()
        with self._lock:
            self._seen = {pid: seen for pid, seen in self._seen.items() if now - seen[0] < REMEMBERED_SECONDS}
            return [subject for _, subject in self._seen.values()]

    def _run(self) -> None:
        while letters := self._inbox.take(BATCH):
            records = [record for letter in letters if (record := self._record(letter))]
            if records:
                self._emit(records)

    def _record(self, letter: Letter) -> Record | None:
        try:
            measurement = parse(letter.payload)
        except BadData as error:
            self.bad += 1
            if self.bad % EVERY == 1:
                self._note(f"a measurement of process {letter.pid} is none ({self.bad} so far): {error}")
            return None
        self._remember(letter)
        return measurement.record(self._senders.labels(letter.pid))

    def _remember(self, letter: Letter) -> None:
        with self._lock:
            if letter.pid in self._seen or len(self._seen) < MOST_SENDERS:
                self._seen[letter.pid] = time.monotonic(), Subject(letter.pid, letter.uid, "data")
