"""What a sink is, and the thread that keeps a slow or broken one from holding up the rest."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from npuscope.monitor.metrics.record import Record

MOST_BATCHES = 1000
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
STOP_SECONDS = 3.0


class Sink(Protocol):
    """Takes records."""

    name: str
    """What it writes to, for the log."""

    def write(self, records: Sequence[Record]) -> None:
        """Write all of them. When it raises, none has been written, and the same ones come again."""

    def close(self) -> None:
        """Nothing more will come."""


class Outlet:
    """A sink behind a queue and a thread of its own. When the queue is full, the oldest batch is lost and counted."""

    def __init__(
        self,
        sink: Sink,
        note: Callable[[str], None],
        waits: Sequence[float] = RETRY_SECONDS,
        most: int = MOST_BATCHES,
    ) -> None:
        self.lost = 0
        """Records that nobody has written."""
        self._sink = sink
        self._note = note
        self._waits = waits
        self._queue: queue.Queue[Sequence[Record]] = queue.Queue(most)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink {sink.name}"[:15], daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def offer(self, records: Sequence[Record]) -> None:
        """Hand records over; never waits."""
        while True:
            try:
                self._queue.put_nowait(records)
                return
            except queue.Full:
                self._lose_oldest()

    def _lose_oldest(self) -> None:
        try:
            oldest = self._queue.get_nowait()
        except queue.Empty:  # it has been written meanwhile
            return
        self.lost += len(oldest)

    def stop(self) -> None:
        """End, once everything has been written, or tried for the last time."""
        self._stop.set()
        self.offer(())  # wakes the thread
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        works = True
        while not (self._stop.is_set() and self._queue.empty()):
            batch = self._queue.get()
            # At the end one failure is enough to know that the rest would fail as well.
            works = works and self._write(batch)
            self.lost += 0 if works else len(batch)
        if self.lost:
            self._note(f"{self.lost} records never reached {self._sink.name}")
        try:
            self._sink.close()
        except Exception as error:
            self._note(f"cannot close {self._sink.name}: {reason(error)}")

    def _write(self, batch: Sequence[Record]) -> bool:
        """Write it, however often that takes; False when the end came first."""
        tries = 0
        while True:
            try:
                if batch:
                    self._sink.write(batch)
            except Exception as error:  # whatever is wrong with a sink, the daemon goes on
                if not tries:
                    self._note(f"cannot write metrics to {self._sink.name}, trying again: {reason(error)}")
                if self._stop.is_set():
                    return False
                self._stop.wait(self._waits[min(tries, len(self._waits) - 1)])
                tries += 1
            else:
                if tries:
                    self._note(f"metrics are written to {self._sink.name} again")
                return True


def reason(error: Exception) -> str:
    """An error in a few words."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
