"""Records as lines of JSON: which keys a kind has (monitor formats, 5.1). Keys stand in alphabetical order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.monitor.activity.batch import Batch, Column, joined
from npuscope.monitor.activity.kinds import APIS, DATA_TYPES, Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.processors.jsonl_text import Fields, Named, Sheet
from npuscope.monitor.agent.processors.ranges import Ranges, instants, of_side

WRITTEN = frozenset({*APIS, Kind.KERNEL, Kind.COMMUNICATION, Kind.MARKER})
"""Kinds that have lines."""
NO_TYPE = DATA_TYPES[65535]
ANNOUNCED = Flag.START_WITH_DEVICE | Flag.INSTANT_WITH_DEVICE
MOST_ANNOUNCED = 1 << 18
"""Records of the host whose device's record is waited for; older ones are forgotten."""


class Sheets:
    """Turns the records of a run into lines. For one thread at a time."""

    def __init__(self, strings: Strings) -> None:
        self.devices: set[int] = set()
        """Those on which something ran."""
        self.ranges = {Side.HOST: Ranges(), Side.DEVICE: Ranges()}
        self._strings = strings
        self._announced: Batch | None = None

    def of(self, batch: Batch) -> Iterator[Sheet]:
        """The lines of records, at least one, of a kind in WRITTEN."""
        if batch.kind is Kind.MARKER:
            yield from self._host_marks(of_side(batch, Side.HOST))
            yield from self._device_marks(of_side(batch, Side.DEVICE))
        elif batch.kind is Kind.KERNEL:
            self.devices.update(np.unique(batch["device"]).tolist())
            yield _kernels(batch)
        elif batch.kind is Kind.COMMUNICATION:
            self.devices.update(np.unique(batch["device"]).tolist())
            yield self._collectives(batch)
        else:
            yield _calls(batch)

    def _collectives(self, batch: Batch) -> Sheet:
        values, place = np.unique(batch["data_type"], return_inverse=True)
        types = [self._strings.number(DATA_TYPES.get(value, NO_TYPE)) for value in values.tolist()]
        fields: Fields = [
            ("algType", Named(batch["algorithm"])),
            ("commName", Named(batch["comm"])),
            ("correlationId", batch["correlation"]),
            ("count", batch["count"]),
            ("dataType", Named(np.array(types, np.int32)[place])),
            ("deviceId", batch["device"]),
            ("endNs", batch["end"]),
            ("kind", batch.kind.label),
            ("name", Named(batch["name"])),
            ("startNs", batch["start"]),
            ("streamId", batch["stream"]),
        ]
        return Sheet(fields, len(batch))

    def _host_marks(self, batch: Batch) -> Iterator[Sheet]:
        self._announce(batch.where(np.flatnonzero(batch["flag"] & ANNOUNCED)))
        moments = instants(batch)
        if len(moments):
            yield _host_sheet(moments, moments)
        starts, ends = self.ranges[Side.HOST].pair(batch)
        if len(starts):
            yield _host_sheet(starts, ends)

    def _announce(self, batch: Batch) -> None:
        if len(batch):
            every = joined([self._announced, batch]) if self._announced is not None else batch
            self._announced = every.where(np.arange(max(0, len(every) - MOST_ANNOUNCED), len(every)))

    def _device_marks(self, batch: Batch) -> Iterator[Sheet]:
        self.devices.update(np.unique(batch["device"]).tolist())
        moments = instants(batch)
        if len(moments):
            yield self._device_sheet(moments, moments)
        starts, ends = self.ranges[Side.DEVICE].pair(batch)
        if len(starts):
            yield self._device_sheet(starts, ends)

    def _device_sheet(self, start: Batch, end: Batch) -> Sheet:
        name, domain = self._names(end)
        fields: Fields = [
            ("deviceId", end["device"]),
            ("domain", Named(domain)),
            ("endNs", end["time"]),
            ("id", end["id"]),
            ("kind", Kind.MARKER.label),
            ("name", Named(name)),
            ("sourceKind", "Device"),
            ("startNs", start["time"]),
            ("streamId", end["stream"]),
        ]
        return Sheet(fields, len(end))

    def _names(self, batch: Batch) -> tuple[Column, Column]:
        """Name and domain of the device's records: those of the host's records with the same id, where there are
        any."""
        name, domain = batch["name"].copy(), batch["domain"].copy()
        host = self._announced
        if host is None:
            return name, domain
        order = np.argsort(host["id"], kind="stable")
        place = np.minimum(np.searchsorted(host["id"], batch["id"], sorter=order), len(order) - 1)
        match = order[place]
        known = host["id"][match] == batch["id"]
        name[known], domain[known] = host["name"][match[known]], host["domain"][match[known]]
        left = np.setdiff1d(np.arange(len(host)), match[known])
        self._announced = host.where(left) if len(left) else None
        return name, domain


def _calls(batch: Batch) -> Sheet:
    fields: Fields = [
        ("correlationId", batch["correlation"]),
        ("endNs", batch["end"]),
        ("kind", batch.kind.label),
        ("name", Named(batch["name"])),
        ("processId", batch["process"]),
        ("startNs", batch["start"]),
        ("threadId", batch["thread"]),
    ]
    return Sheet(fields, len(batch))


def _kernels(batch: Batch) -> Sheet:
    fields: Fields = [
        ("correlationId", batch["correlation"]),
        ("deviceId", batch["device"]),
        ("endNs", batch["end"]),
        ("kind", batch.kind.label),
        ("name", Named(batch["name"])),
        ("startNs", batch["start"]),
        ("streamId", batch["stream"]),
        ("type", Named(batch["type"])),
    ]
    return Sheet(fields, len(batch))


def _host_sheet(start: Batch, end: Batch) -> Sheet:
    fields: Fields = [
        ("domain", Named(start["domain"])),
        ("endNs", end["time"]),
        ("id", start["id"]),
        ("kind", Kind.MARKER.label),
        ("name", Named(start["name"])),
        ("processId", end["process"]),
        ("sourceKind", "Host"),
        ("startNs", start["time"]),
        ("threadId", end["thread"]),
    ]
    return Sheet(fields, len(start))
