"""The thread that measures at regular moments."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from npuscope.monitor.metrics.record import Record

BATCH = 64
STOP_SECONDS = 5.0


class Source(Protocol):
    """Something that can be measured."""

    name: str

    def sample(self) -> Iterable[Record]:
        """The measurements of now."""


def next_moment(begin: float, interval: float, now: float) -> float:
    """The first moment after `now` of those that lie whole intervals after `begin`: late ones are left out, and no
    delay is carried on."""
    return begin + (int((now - begin) // interval) + 1) * interval


class Sampler:
    """Measures at once and then at every interval, until told to stop."""

    def __init__(
        self,
        interval: float,
        sources: Sequence[Source],
        emit: Callable[[list[Record]], None],
        note: Callable[[str], None],
    ) -> None:
        self._interval = interval
        self._sources = sources
        self._emit = emit
        self._note = note
        self._noted: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what has been measured has been handed on."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def rest(self, seconds: float) -> None:
        """Leave the processor to others in the middle of a sample."""
        self._stop.wait(seconds)

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._stop.is_set():
            for source in self._sources:
                self._take(source)
            now = time.monotonic()
            self._stop.wait(next_moment(begin, self._interval, now) - now)

    def _take(self, source: Source) -> None:
        batch: list[Record] = []
        try:
            for record in source.sample():
                batch.append(record)
                if len(batch) >= BATCH:
                    self._emit(batch)
                    batch = []
                if self._stop.is_set():
                    break
        except Exception as error:  # one source's trouble must not silence the others
            self._trouble(source, error)
        if batch:
            self._emit(batch)

    def _trouble(self, source: Source, error: Exception) -> None:
        line = f"no metrics of the {source.name}: {error or type(error).__name__}"
        if line not in self._noted and len(self._noted) < 100:
            self._noted.add(line)
            self._note(line)
