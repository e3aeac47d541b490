"""Ranges and marks that the process makes through our ``mstx`` calls, as Marker records.

The calls are made by the training loop, so what they cost counts: a record is one tuple in a list of its thread's own;
no lock is taken. Everything else (columns, numbers for texts) happens in whichever thread delivers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from time import time_ns
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import Batch, batch, joined
from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.numbered import Numbered
from npuscope.monitor.agent.sources.source import Deliver
from npuscope.monitor.agent.sources.streams import STREAMS, Streams
from npuscope.mstx.ranges import listen

FLAGS = np.array([
    Flag.INSTANT, Flag.START, Flag.END, Flag.INSTANT_WITH_DEVICE, Flag.START_WITH_DEVICE, Flag.END_WITH_DEVICE,
], np.uint32)  # fmt: skip
"""By what happened (MARK, START, END); WITH_DEVICE more where the device has a side."""
WITH_DEVICE = 3
WAKE = 1 << 16
"""Records of one thread at which they are delivered without being asked for."""
MOST = 1 << 20
"""Records of one thread that wait at most, some 150 MB; those beyond are counted and lost."""

Record = tuple[int, int, int, str, str]
"""What happened, time, number, message, domain."""
NOWHERE = (-1, -1)
"""Device and stream of a record of the host."""


class _Log:
    """The records of one thread since they were last taken."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.number = threading.get_native_id()
        self.records: list[Record] = []
        self.on_device: list[tuple[Record, tuple[int, int]]] = []
        self.lost = 0


class MstxSource:
    """Marker records of the host; for a range or mark in a stream of a simulated device, of that device too."""

    name = "mstx"
    kinds = frozenset({Kind.MARKER})

    def __init__(self, streams: Streams = STREAMS) -> None:
        self._streams = streams
        self._lock = threading.Lock()  # of who delivers, never of who makes a call
        self._running = False
        self._clear()

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Listen from now on, when Marker is among the kinds."""
        self.stop()
        with self._lock:
            self._clear()
            self._names, self._deliver = Numbered(strings), deliver
            self._running = True
        threading.Thread(target=self._serve, args=(self._full,), name="MstxSource", daemon=True).start()
        self.change(kinds)

    def change(self, kinds: frozenset[Kind]) -> None:
        """Listen, or no longer."""
        if self._running:
            listen(self._note if Kind.MARKER in kinds else None)

    def flush(self) -> None:
        """Deliver what is complete so far."""
        self._drain(last=False)

    def stop(self) -> None:
        """Deliver the rest and stop listening."""
        if self._running:
            self._running = False
            listen(None)
            self._streams.watched = False
            self._drain(last=True)
            self._full.set()

    @property
    def losses(self) -> Mapping[str, int]:
        """Records that came faster than they were taken."""
        lost = sum(log.lost for log in self._logs) + self._lost
        return {"markers beyond what may wait": lost} if lost else {}

    def _clear(self) -> None:
        self._local = threading.local()
        self._logs: list[_Log] = []
        self._lost = 0  # of threads that have ended
        self._held: Batch | None = None
        self._full = threading.Event()

    def _note(self, what: int, number: int, message: str, domain: str, stream: Any) -> None:
        """Take one call, in the thread that makes it."""
        now = time_ns()
        try:
            records = self._local.records
        except AttributeError:
            records = self._begin_log()
        if len(records) >= WAKE and not self._room(records):
            return
        if stream is not None and (there := self._streams.reached(stream, now)):
            device, place, when = there
            self._streams.watched = True
            what += WITH_DEVICE
            self._local.log.on_device.append(((what, when, number, message, domain), (device, place)))
        records.append((what, now, number, message, domain))

    def _begin_log(self) -> list[Record]:
        """This thread's list, from its first record on."""
        log = self._local.log = _Log()
        self._logs.append(log)
        self._local.records = log.records
        return log.records

    def _room(self, records: list[Record]) -> bool:
        """Whether a long list takes one more record; the source's own thread is to shorten it."""
        if len(records) >= MOST:
            self._local.log.lost += 1
            return False
        self._full.set()
        return True

    def _serve(self, full: threading.Event) -> None:
        """Deliver whenever a thread has a lot."""
        while full.wait() and self._running and full is self._full:
            full.clear()
            self._drain(last=False)

    def _drain(self, last: bool) -> None:
        """Deliver what the threads have noted. What is younger than the beginning waits for the next time: a range
        may end in another thread, whose records are taken later than those of the one that started it."""
        with self._lock:
            until = time_ns()
            parts = [part for log in tuple(self._logs) for part in self._taken(log)]
            self._forget_ended()
            if self._held is not None:
                parts.insert(0, self._held)
                self._held = None
            if not parts:
                return
            found = joined(parts) if len(parts) > 1 else parts[0]
            if len(parts) > 1:
                found = found.where(np.argsort(found["time"], kind="stable"))
            young = found["time"] > until
            if not last and len(parts) > 1 and young.any():
                # A device's time may lie ahead; it waits for nobody.
                young &= found["side"] == Side.HOST
                self._held, found = found.where(young), found.where(~young)
            if len(found):
                self._deliver(found)

    def _forget_ended(self) -> None:
        ended = [log for log in self._logs if not log.records and not log.thread.is_alive()]
        for log in ended:
            self._lost += log.lost
            self._logs.remove(log)

    def _taken(self, log: _Log) -> Iterator[Batch]:
        """The records of a thread; what it adds meanwhile stays. Those of a device are fewer than the host's, and come
        with them or later."""
        host = log.records[:]
        del log.records[: len(host)]
        if host:
            yield self._columns(host, Side.HOST, [NOWHERE] * len(host), os.getpid(), log.number)
        device = log.on_device[:]
        del log.on_device[: len(device)]
        if device:
            records, places = zip(*device, strict=True)
            yield self._columns(records, Side.DEVICE, places, -1, -1)

    def _columns(
        self, records: Sequence[Record], side: Side, places: Sequence[tuple[int, int]], process: int, thread: int
    ) -> Batch:
        what, times, numbers, messages, domains = zip(*records, strict=True)
        devices, streams = np.array(places, np.int64).T
        count = len(records)
        return batch(
            Kind.MARKER,
            {
                "flag": FLAGS[np.array(what)], "side": np.full(count, side), "time": times, "id": numbers,
                "process": np.full(count, process), "thread": np.full(count, thread), "device": devices,
                "stream": streams, "name": self._names.of(messages), "domain": self._names.of(domains),
            },
        )  # fmt: skip
