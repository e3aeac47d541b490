"""All of the daemon's measuring: sources, store and sinks, put together."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from npuscope.monitor.daemon.reader import Reader
from npuscope.monitor.metrics.host import Host
from npuscope.monitor.metrics.intake import Intake
from npuscope.monitor.metrics.own import Own
from npuscope.monitor.metrics.process import Processes, Subject, subjects
from npuscope.monitor.metrics.record import PROCESS, Record, Value
from npuscope.monitor.metrics.sampler import Sampler, Source
from npuscope.monitor.metrics.settings import MetricsSettings
from npuscope.monitor.metrics.store import Store
from npuscope.monitor.sinks.json_lines import JsonLines, StockJson
from npuscope.monitor.sinks.prometheus import Prometheus
from npuscope.monitor.sinks.relay import Relay
from npuscope.monitor.sinks.sink import Outlet, Sink
from npuscope.monitor.sinks.tensorboard import TensorBoard

FADE_INTERVALS = 3
"""A process that has not been measured so often is gone."""


class Collection:
    """Measures from `start` to `stop`. `note` takes lines for the log, from any thread, without waiting."""

    def __init__(self, settings: MetricsSettings, reader: Reader, note: Callable[[str], None]) -> None:
        """Raises UserError when a place to write to cannot be used."""
        self._reader = reader
        self._outlets = [Outlet(sink, note) for sink in sinks(settings, note)]
        self.store = Store(fades={PROCESS: FADE_INTERVALS * settings.interval} if settings.interval else None)
        prefix = {"host_prefix": ""} if settings.stock_names else {}
        self.prometheus = Prometheus(self.store.latest, socket.gethostname(), **prefix)
        self._intake = Intake(reader.inbox, self._emit, note)
        sources: list[Source] = [
            Host(settings.nic_prefixes),
            Own(self._counts),
            Processes(self._subjects, settings.from_environment, self._rest, settings.interval),
        ]
        self._measures = settings.interval > 0
        self._sampler = Sampler(settings.interval, sources, self._emit, note)
        if settings.prometheus:
            address, port = settings.prometheus
            note(f"metrics for Prometheus on port {self.prometheus.serve(address, port)} of {address}")

    def start(self) -> None:
        """Begin."""
        for outlet in self._outlets:
            outlet.start()
        self._intake.start()
        if self._measures:
            self._sampler.start()

    def stop(self) -> None:
        """End, and have written what there is."""
        self._sampler.stop()
        self._intake.stop()
        for outlet in self._outlets:
            outlet.stop()
        self.prometheus.close()

    def _emit(self, records: list[Record]) -> None:
        self.store.put(records)
        self.prometheus.totals.add(records)
        for outlet in self._outlets:
            outlet.offer(records)

    def _subjects(self) -> list[Subject]:
        found = {subject.pid: subject for subject in self._intake.subjects()}
        found |= {subject.pid: subject for subject in self._reader.call(subjects)}
        return list(found.values())

    def _rest(self, seconds: float) -> None:
        self._sampler.rest(seconds)

    def _counts(self) -> Mapping[str, Value]:
        return self._reader.figures() | {
            "bad_data": self._intake.bad,
            "store_refused": self.store.refused,
            "records_lost": sum(outlet.lost for outlet in self._outlets),
        }


def sinks(settings: MetricsSettings, note: Callable[[str], None]) -> list[Sink]:
    """Where records are written to. Raises UserError for a place that cannot be used."""
    found: list[Sink] = []
    if settings.log_file:
        found.append(JsonLines(settings.log_file))
    if settings.stock_json:
        found.append(StockJson(note))
    if settings.tensorboard:
        found.append(TensorBoard(settings.tensorboard, note))
    if settings.relay:
        found.append(Relay(*settings.relay))
    return found
