"""The newest measurements in the form that Prometheus reads."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from npuscope.errors import UserError
from npuscope.monitor.metrics.record import CUMULATIVE, DAEMON, DEVICE, HOST, PROCESS, Record

Family = CounterMetricFamily | GaugeMetricFamily
MOST_TOTALS = 4096
NANOSECONDS = 1e9
LABELS: Mapping[str, tuple[str, ...]] = {
    HOST: (),
    PROCESS: ("pid", "host_pid", "rank", "job"),
    DEVICE: ("device", "kind", "domain", "pid", "host_pid", "rank"),
    DAEMON: (),
}
NET = re.compile(r"([rt]x_(?:bytes|packets|errors|drops))\.(.+)", re.DOTALL)
NODE = re.compile(r"(cpu_[usi]_node)(\d+)")
HELP = {
    "cpu_util": "Share of processor time that was not idle, in percent, since the sample before.",
    "uptime": "Seconds since the host started.",
    "rx_bytes": "Bytes received since the sample before.",
    "tx_bytes": "Bytes sent since the sample before.",
    "cpu_percent": "Processor time since the sample before, in percent of one processor.",
    "rss_bytes": "Resident memory.",
    "shared_bytes": "Resident memory that is backed by files or shared.",
    "activity_last_seconds": "What the plug-in reported last: the time of all activities of a kind, or of a range.",
    "activity_seconds": "The sum of what the plug-in reported.",
    "activity_reports": "How often the plug-in reported.",
    "activity_records": "How many activities the reports were of, where they say so.",
    "activity_min_seconds": "The shortest activity of the last report.",
    "activity_max_seconds": "The longest activity of the last report.",
    "activity_p50_seconds": "Half of the activities of the last report took no longer.",
    "activity_p99_seconds": "99 % of the activities of the last report took no longer.",
}


class Totals:
    """Sums of what the plug-in reported, which a rate can be taken of. The ones not renewed for longest make way."""

    def __init__(self, most: int = MOST_TOTALS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._sums: OrderedDict[tuple[str, ...], tuple[float, int, int]] = OrderedDict()

    def add(self, records: Iterable[Record]) -> None:
        """Count records of devices."""
        with self._lock:
            for record in records:
                if record.entity == DEVICE:
                    key = tuple(record.labels.get(label, "") for label in LABELS[DEVICE])
                    seconds, reports, count = self._sums.pop(key, (0.0, 0, 0))
                    seconds += float(record.values["duration"]) / NANOSECONDS
                    self._sums[key] = seconds, reports + 1, count + int(record.values.get("count", 0))
                    if len(self._sums) > self._most:
                        self._sums.popitem(last=False)

    def all(self) -> list[tuple[tuple[str, ...], tuple[float, int, int]]]:
        """Labels and (seconds, reports, records)."""
        with self._lock:
            return list(self._sums.items())


class Prometheus(Collector):
    """Collects from where the newest records are; `host_prefix` is what the names of the host's metrics begin with."""

    def __init__(
        self, latest: Callable[[], Sequence[Record]], host_name: str, host_prefix: str = "npuscope_host_"
    ) -> None:
        self.totals = Totals()
        self._latest = latest
        self._host_name = host_name
        self._prefixes = {HOST: host_prefix, PROCESS: "npuscope_process_", DAEMON: "npuscope_daemon_"}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._server: Any = None

    def exposition(self) -> tuple[bytes, str]:
        """The text, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def serve(self, address: str, port: int) -> int:
        """Answer HTTP on a port of its own, 0 for any; returns the port. Raises UserError when it cannot be had."""
        try:
            self._server, _ = start_http_server(port, address, self._registry)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"cannot serve metrics on port {port} of {address}: {reason}") from None
        return int(self._server.server_port)

    def close(self) -> None:
        """Stop answering."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def collect(self) -> Iterator[Family]:
        """What the library asks for at every scrape."""
        families: dict[str, Family] = {}
        for record in self._latest():
            if record.entity == DEVICE:
                labels = {name: record.labels.get(name, "") for name in LABELS[DEVICE]}
                for name, key in {"last": "duration", "min": "min", "max": "max", "p50": "p50", "p99": "p99"}.items():
                    if key in record.values:
                        seconds = float(record.values[key]) / NANOSECONDS
                        self._add(families, f"npuscope_activity_{name}_seconds", labels, seconds, counts=False)
            else:
                self._add_record(families, record)
        for labelled, (seconds, reports, count) in self.totals.all():
            labels = dict(zip(LABELS[DEVICE], labelled, strict=True))
            self._add(families, "npuscope_activity_seconds", labels, seconds, counts=True)
            self._add(families, "npuscope_activity_reports", labels, reports, counts=True)
            if count:
                self._add(families, "npuscope_activity_records", labels, count, counts=True)
        yield from families.values()

    def _add_record(self, families: dict[str, Family], record: Record) -> None:
        common = {name: record.labels.get(name, "") for name in LABELS[record.entity]}
        counts = record.entity in (PROCESS, DAEMON)
        for name, value in record.values.items():
            if isinstance(value, int | float):
                base, more = _split(name) if record.entity == HOST else (name, {})
                whole = self._prefixes[record.entity] + base
                self._add(families, whole, common | more, value, counts=counts and name in CUMULATIVE)

    def _add(
        self, families: dict[str, Family], name: str, labels: Mapping[str, str], value: float, *, counts: bool
    ) -> None:
        family = families.get(name)
        if family is None:
            kind: type[Family] = CounterMetricFamily if counts else GaugeMetricFamily
            family = families[name] = kind(name, self._help(name), labels=["host_name", *labels])
        family.add_metric([self._host_name, *labels.values()], value)

    def _help(self, name: str) -> str:
        for prefix in (*self._prefixes.values(), "npuscope_"):
            if name.startswith(prefix) and name.removeprefix(prefix) in HELP:
                return HELP[name.removeprefix(prefix)]
        return name.replace("_", " ")


def _split(name: str) -> tuple[str, dict[str, str]]:
    """The interface or the package that the stock daemon puts into a metric's name, as a label."""
    for pattern, label in ((NET, "net"), (NODE, "node")):
        if found := pattern.fullmatch(name):
            return found[1], {label: found[2]}
    return name, {}
