"""Kernels on our simulated device, as the activities of a device.

Whoever runs the kernels says so once (`connect`) and then reports each launch while that is `wanted`: when the host
began it and when it returned, and how long the kernel takes on the device by the model of time. From that come

* a Kernel record, placed after the launch on a stream that does one thing after the other (:mod:`.streams`);
* the launch itself on the host, as API and as RuntimeAPI record; its length is that of the simulation.

Device times are modelled, host times are measured.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from npuscope.monitor.activity.batch import batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.source import Deliver, Unavailable
from npuscope.monitor.agent.sources.streams import STREAMS, Streams

CALLS = {Kind.API: "launch", Kind.RUNTIME_API: "KernelLaunch"}
"""Names of the launch on the host, by kind."""
MOST = 1 << 18
"""Launches that wait at most; those beyond are counted and lost."""


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch. Times are nanoseconds: of the wall clock when the host called (`began`) and had control again
    (`returned`), and how long the device takes (`duration`), None where there is no model of it."""

    kernel: str
    type: str
    """``KERNEL_AICORE``, ``KERNEL_AIVEC`` or ``KERNEL_MIX_AIC``, as on a card."""
    device: int
    stream: int
    began: int
    returned: int
    duration: int | None


@dataclass(frozen=True, slots=True)
class _Placed:
    """A launch with where its kernel runs, (start, end), and the thread that made it."""

    launched: Launched
    span: tuple[int, int] | None
    correlation: int
    thread: int


_connected = False
_receiver: SimSource | None = None


def connect() -> None:
    """Say that this process's kernels are simulated and will be reported."""
    global _connected
    _connected = True


def connected() -> bool:
    """Whether this process has a simulated device."""
    return _connected


def wanted(streams: Streams = STREAMS) -> bool:
    """Whether a launch need be reported now: for its records, or for markers in the stream behind it."""
    return _receiver is not None or streams.watched


def report(launched: Launched, streams: Streams = STREAMS) -> None:
    """One launch has come to its end; called in the thread that made it."""
    span = None
    if launched.duration is not None:
        span = streams.place(launched.device, launched.stream, launched.returned, launched.duration)
    receiver = _receiver
    if receiver is not None:
        receiver.take(launched, span)


def _receive(receiver: SimSource | None) -> None:
    global _receiver
    _receiver = receiver


# Whoever receives is the parent's.
os.register_at_fork(after_in_child=lambda: _receive(None))


class SimSource:
    """Kernel, API and RuntimeAPI records of simulated launches."""

    name = "sim"
    kinds = frozenset({Kind.KERNEL, Kind.API, Kind.RUNTIME_API})

    def __init__(self) -> None:
        self._kinds: frozenset[Kind] = frozenset()
        self._lock = threading.Lock()
        self._correlation = 0
        self._waiting: list[_Placed] = []
        self._losses = Counter[str]()

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Take reports from now on. Raises Unavailable where nobody will make any."""
        if not _connected:
            raise Unavailable("no simulated device here: npuscope monitor run --simulate gives a script one")
        self.stop()
        with self._lock:
            self._strings, self._deliver = strings, deliver
            self._losses.clear()
            self._kinds = self.kinds & kinds
        _receive(self)

    def change(self, kinds: frozenset[Kind]) -> None:
        """Collect other kinds from now on."""
        self.flush()
        self._kinds = self.kinds & kinds

    def take(self, launched: Launched, span: tuple[int, int] | None) -> None:
        """One launch, with (start, end) of its kernel where there is a model of that."""
        with self._lock:
            if not self._kinds:
                return
            self._correlation += 1
            if span is None and Kind.KERNEL in self._kinds:
                self._losses["kernels without a model of their time"] += 1
            if len(self._waiting) < MOST:
                self._waiting.append(_Placed(launched, span, self._correlation, threading.get_native_id()))
            else:
                self._losses["launches beyond what may wait"] += 1

    def flush(self) -> None:
        """Deliver what has been reported."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            if not waiting:
                return
            for kind in CALLS.keys() & self._kinds:
                self._give_calls(kind, waiting)
            if Kind.KERNEL in self._kinds:
                self._give_kernels([(placed, placed.span) for placed in waiting if placed.span is not None])

    def stop(self) -> None:
        """Deliver the rest; reports are no longer taken."""
        if _receiver is self:
            _receive(None)
        self.flush()
        self._kinds = frozenset()

    @property
    def losses(self) -> Mapping[str, int]:
        """Launches of which something is missing."""
        return dict(self._losses)

    def _give_calls(self, kind: Kind, waiting: list[_Placed]) -> None:
        count, name = len(waiting), self._strings.number(CALLS[kind])
        self._deliver(batch(kind, {
            "start": [placed.launched.began for placed in waiting],
            "end": [placed.launched.returned for placed in waiting],
            "process": [os.getpid()] * count, "thread": [placed.thread for placed in waiting],
            "correlation": [placed.correlation for placed in waiting], "name": [name] * count,
        }))  # fmt: skip

    def _give_kernels(self, waiting: list[tuple[_Placed, tuple[int, int]]]) -> None:
        if not waiting:
            return
        launches = [placed.launched for placed, _ in waiting]
        self._deliver(batch(Kind.KERNEL, {
            "start": [start for _, (start, _) in waiting], "end": [end for _, (_, end) in waiting],
            "device": [launched.device for launched in launches], "stream": [launched.stream for launched in launches],
            "correlation": [placed.correlation for placed, _ in waiting],
            "type": self._strings.numbers(launched.type for launched in launches),
            "name": self._strings.numbers(launched.kernel for launched in launches),
        }))  # fmt: skip
