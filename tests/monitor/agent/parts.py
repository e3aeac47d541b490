"""A source, a processor and clocks at the seams of the collector, of which a test sees everything."""

from __future__ import annotations

import collections
import socket
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from npuscope.monitor.activity.batch import COLUMNS, Batch, batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.clock import Clock
from npuscope.monitor.agent.collector import Collector
from npuscope.monitor.agent.commands import Command
from npuscope.monitor.agent.log import Log
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.protocol.fabric import Channel, Message, Poll, Status, decode
from npuscope.monitor.protocol.standing import Standing


class HandClock(Clock):
    """Stands still until it is moved; the wall clock can be set apart."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.offset = 1_700_000_000_000_000_000

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> int:
        return self.offset + round(self.seconds * 1e9)


class OwnSource:
    """Gives what the test puts in."""

    def __init__(self, name: str = "own", kinds: Sequence[Kind] = (Kind.KERNEL, Kind.MARKER), why: str = "") -> None:
        self.name = name
        self.kinds = frozenset(kinds)
        self.why = why
        self.calls: list[object] = []
        self.losses: dict[str, int] = {}
        self.at_stop: list[Batch] = []
        self.strings = Strings()
        self.deliver: Deliver = lambda batch: None

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        if self.why:
            raise Unavailable(self.why)
        self.calls.append(("start", kinds))
        self.strings, self.deliver = strings, deliver

    def change(self, kinds: frozenset[Kind]) -> None:
        self.calls.append(("change", kinds))

    def flush(self) -> None:
        self.calls.append("flush")

    def stop(self) -> None:
        self.calls.append("stop")
        for one in self.at_stop:
            self.deliver(one)

    def kernels(self, names: Sequence[str], start: int | Sequence[int] = 0) -> Batch:
        """Kernels of these names."""
        columns = {name: np.zeros(len(names), kind) for name, kind in COLUMNS[Kind.KERNEL].items()}
        columns["name"] = self.strings.numbers(names)
        columns["start"] = columns["end"] = np.broadcast_to(np.asarray(start, np.int64), len(names)).copy()
        return batch(Kind.KERNEL, columns)

    def give(self, *names: str, start: int = 0) -> None:
        """Deliver kernels."""
        self.deliver(self.kernels(names, start))


class OwnProcessor:
    """Keeps what comes."""

    def __init__(self, command: Command, run: Run) -> None:
        self.command, self.run = command, run
        self.batches: list[Batch] = []
        self.reports: list[int] = []
        self.closed = 0
        self.dropped: collections.Counter[str] = collections.Counter()
        self.fails: Exception | None = None

    def add(self, batch: Batch) -> None:
        if self.fails:
            raise self.fails
        self.batches.append(batch)

    def report(self, now: int) -> None:
        self.reports.append(now)
        if self.fails:
            raise self.fails

    def close(self) -> None:
        self.closed += 1
        if self.fails:
            raise self.fails

    @property
    def counts(self) -> Mapping[str, int]:
        return self.dropped

    @property
    def names(self) -> list[str]:
        """Of the records, in their order."""
        return [self.run.strings.texts[number] for one in self.batches for number in one["name"]]


class Bench:
    """A collector between a source and processors that keep everything."""

    def __init__(self, folder: Path, *sources: OwnSource) -> None:
        self.source = sources[0] if sources else OwnSource()
        self.clock = HandClock()
        self.made: list[OwnProcessor] = []
        self.told: list[Standing] = []
        self.busy = ""
        self.asked = 0
        self.log = Log(str(folder))
        self.collector = Collector(
            lambda: self._sources(sources), self._build, self.log, self.told.append, lambda: self.busy,
            lambda: '{"tp": {}}', self.clock,
        )  # fmt: skip

    def _sources(self, sources: Sequence[OwnSource]) -> Sequence[OwnSource]:
        self.asked += 1
        return sources or [self.source]

    def _build(self, command: Command, run: Run) -> OwnProcessor:
        self.made.append(OwnProcessor(command, run))
        return self.made[-1]

    @property
    def processor(self) -> OwnProcessor:
        """The last one."""
        return self.made[-1]

    def start(self, **what: object) -> None:
        """Start."""
        self.collector.handle(Command(start=True, **({"kinds": frozenset({Kind.KERNEL})} | what)))  # type: ignore[arg-type]

    def stop(self) -> None:
        """Stop."""
        self.collector.handle(Command(stop=True))

    def pass_seconds(self, seconds: float) -> float | None:
        """Let time go by, then have done what is due."""
        self.clock.seconds += seconds
        return self.collector.tick()

    def lines(self, letter: str) -> list[str]:
        """The lines of the log of one severity."""
        if self.log.path is None:
            return []
        text = self.log.path.read_text()
        return [line for line in text.replace("\n[ERROR]", " [ERROR]").splitlines() if line.startswith(letter)]


class Counter:
    """A daemon's two sockets, as the vendor's daemon has them; the test answers by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.control = self._bound("dynolog.sock")
        self.data = self._bound("dynolog_data.sock")
        self.source = b""

    def _bound(self, name: str) -> socket.socket:
        path = self.folder / name
        path.unlink(missing_ok=True)
        endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        endpoint.bind(str(path))
        endpoint.settimeout(20)
        return endpoint

    def take(self) -> Message:
        """The next message."""
        datagram, self.source = self.control.recvfrom(65536)
        return decode(datagram)

    def status(self, channel: Channel) -> Status:
        """The next status of a channel; polls before it get an empty answer."""
        while True:
            message = self.take()
            if isinstance(message, Poll):
                self.answer("")
            elif isinstance(message, Status) and message.channel is channel:
                return message

    def order(self, text: str) -> None:
        """Answer the next poll with a configuration."""
        while not isinstance(self.take(), Poll):
            pass
        self.answer(text)

    def answer(self, text: str, name: bytes = b"req", size: int | None = None) -> None:
        """Send a datagram to whoever sent the last one."""
        payload = text.encode()
        header = struct.pack("=Q32s", len(payload) if size is None else size, name)
        self.control.sendto(header + payload, self.source)

    def close(self) -> None:
        """Close the sockets; their files stay."""
        self.control.close()
        self.data.close()
