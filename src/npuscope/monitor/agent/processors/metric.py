"""Measurements for the daemon: how long activities took, and the ranges that users mark."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import orjson

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.processors.durations import ByDevice, Summary
from npuscope.monitor.agent.processors.marks import Marks, Span
from npuscope.monitor.agent.processors.processor import Run
from npuscope.monitor.agent.processors.texts import sound

LONGEST_NAME, LONGEST_DOMAIN = 1024, 128
LONGEST_PAYLOAD = 4096
"""What the vendor's daemon takes."""
LARGEST = 2**64 - 1
PATIENCE_SECONDS = 5.0
"""Of sending, in one report: a daemon that is slower than the ranges come must not hold up the agent."""
FAILURES = 3
"""In a row, after which the daemon counts as gone until the next report."""
UNSENT, HALF, CROWDED = "the daemon did not take them", "ranges that lack a half", "markers beyond what may wait"

Send = Callable[[bytes], bool]
"""Sends one message; False, or OSError, when it did not get through."""


class Metric:
    """Sums up an interval for each kind and device, and sends a message for each, and two for each range.

    The messages hold what the vendor's daemon reads, and `count`, `min`, `max`, `p50`, `p99` (nanoseconds), `pid` and
    `rank`, which it passes over.
    """

    def __init__(self, send: Send, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._run = run
        self._clock = clock
        self._lock = threading.Lock()
        self._durations: dict[Kind, ByDevice] = {}
        self._marks = Marks(run.strings)
        self._counts: Counter[str] = Counter()

    def add(self, batch: Batch) -> None:
        """Take a batch."""
        if not len(batch):
            return
        with self._lock:
            if batch.kind is Kind.MARKER:
                self._marks.add(batch)
                return
            if batch.kind not in self._durations:
                self._durations[batch.kind] = ByDevice()
            self._durations[batch.kind].add(batch)

    def report(self, now: int) -> None:
        """Send what the interval gave. What the daemon does not take is counted, and the next interval begins anew."""
        with self._lock:
            durations, self._durations = self._durations, {}
            spans = list(self._marks.spans())
            self._counts[HALF] = self._marks.given_up
            self._counts[CROWDED] = self._marks.lost
        self._send_all(self._payloads(durations, spans, now))

    def close(self) -> None:
        """Send the rest."""
        self.report(self._run.ended)
        self._counts[HALF] = self._marks.halves

    @property
    def counts(self) -> Mapping[str, int]:
        """Messages sent and not sent, and what there was of ranges that could not become messages."""
        return +self._counts

    def _payloads(self, durations: Mapping[Kind, ByDevice], spans: list[Span], now: int) -> Iterator[bytes]:
        sender = {"pid": self._run.pid, "rank": self._run.rank}
        for kind, devices in sorted(durations.items()):
            for device, summary in devices.summaries():
                yield _dumped({"kind": kind.label, "deviceId": device, "timestamp": now} | _shown(summary) | sender)
        for span in spans:
            yield _range(span, sender)

    def _send_all(self, payloads: Iterator[bytes]) -> None:
        deadline = self._clock() + PATIENCE_SECONDS
        failures = 0
        for payload in payloads:
            if failures < FAILURES and self._clock() < deadline and self._sent(payload):
                self._counts["sent"] += 1
                failures = 0
            else:
                self._counts[UNSENT] += 1
                failures += 1

    def _sent(self, payload: bytes) -> bool:
        try:
            return self._send(payload) is not False
        except OSError:
            return False


def _shown(summary: Summary) -> dict[str, int]:
    return {
        "duration": min(summary.total, LARGEST),
        "count": summary.count,
        "min": summary.shortest,
        "max": summary.longest,
        "p50": summary.median,
        "p99": summary.p99,
    }


def _range(span: Span, sender: dict[str, int]) -> bytes:
    message = {
        "kind": Kind.MARKER.label,
        "deviceId": span.device,
        "domain": sound(span.domain[:LONGEST_DOMAIN]),
        "name": sound(span.name[:LONGEST_NAME]),
        "duration": max(0, span.end - span.start),
        "timestamp": span.start,
    } | sender
    payload = _dumped(message)
    if len(payload) > LONGEST_PAYLOAD:  # a name of nothing but wide or control characters
        payload = _dumped(message | {"name": sound(span.name[: LONGEST_NAME // 4])})
    return payload


def _dumped(message: Mapping[str, object]) -> bytes:
    return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
