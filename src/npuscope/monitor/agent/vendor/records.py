"""The records of the vendor's Monitor API, with its attribute names. Times are nanoseconds; `to_tuple` has them in
microseconds, in the order in which the columns of a saved sheet stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import ANY_INSTANT, APIS, DATA_TYPES, Kind, Side
from npuscope.monitor.agent.processors.ranges import Ranges, of_side

MICROSECOND = 1000.0
"""In nanoseconds."""
SIDES = {Side.HOST: "Host", Side.DEVICE: "Device"}
Texts = NDArray[np.object_]


class Record:
    """What all records can do."""

    __slots__ = ()
    startNs: int
    endNs: int

    def to_tuple(self) -> tuple[Any, ...]:
        """The attributes in order, the two times in microseconds."""
        values = [getattr(self, name) for name in self.names()]
        at = self.names().index("startNs")
        values[at : at + 2] = [time / MICROSECOND for time in values[at : at + 2]]
        return tuple(values)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The attributes in order; the end stands behind the start."""
        return cls.__match_args__  # type: ignore[attr-defined]


@dataclass(slots=True)
class API(Record):
    """A call on the host."""

    name: str = ""
    startNs: int = 0
    endNs: int = 0
    pid: int = 0
    tid: int = 0
    correlationId: int = 0


@dataclass(slots=True)
class Kernel(Record):
    """A computing operator on a device."""

    name: str = ""
    startNs: int = 0
    endNs: int = 0
    deviceId: int = 0
    streamId: int = 0
    correlationId: int = 0
    type: str = ""


@dataclass(slots=True)
class Communication(Record):
    """A communication operator on a device."""

    name: str = ""
    startNs: int = 0
    endNs: int = 0
    deviceId: int = 0
    streamId: int = 0
    count: int = 0
    dataType: str = ""
    commName: str = ""
    algType: str = ""
    correlationId: int = 0


@dataclass(slots=True)
class Marker(Record):
    """A range or a mark on one side. What does not apply to the side is 0."""

    name: str = ""
    sourceKind: str = ""
    domain: str = ""
    id: int = 0
    startNs: int = 0
    endNs: int = 0
    pid: int = 0
    tid: int = 0
    deviceId: int = 0
    streamId: int = 0


def records_of(records: Batch, texts: Sequence[str]) -> list[Any]:
    """The records of a batch, `texts` being those that its numbers stand for. Ranges without both ends are left out."""
    table = np.array([*texts, ""], object)  # -1, a name that is none, is the last
    return _MAKERS[records.kind](records, table)


def _calls(records: Batch, texts: Texts) -> list[API]:
    columns = (records[name] for name in ("start", "end", "process", "thread", "correlation"))
    return _made(API, texts[records["name"]], *columns)


def _kernels(records: Batch, texts: Texts) -> list[Kernel]:
    columns = (records[name] for name in ("start", "end", "device", "stream", "correlation"))
    return _made(Kernel, texts[records["name"]], *columns, texts[records["type"]])


def _communications(records: Batch, texts: Texts) -> list[Communication]:
    columns = (records[name] for name in ("start", "end", "device", "stream", "count"))
    types = np.array([DATA_TYPES.get(number, str(number)) for number in records["data_type"].tolist()], object)
    return _made(
        Communication, texts[records["name"]], *columns, types, texts[records["comm"]], texts[records["algorithm"]],
        records["correlation"],
    )  # fmt: skip


def _markers(records: Batch, texts: Texts) -> list[Marker]:
    """Ranges and marks of the host, then those of devices, each in the order of their starts."""
    host, device = (_spans(of_side(records, side)) for side in (Side.HOST, Side.DEVICE))
    found = _made_markers(host[0], host[1], texts, Side.HOST)
    named = {marker.id: marker for marker in found}
    there = _made_markers(device[0], device[1], texts, Side.DEVICE)
    for marker in there:
        # A device's record need not say what it stands for.
        if not marker.name and marker.id in named:
            marker.name, marker.domain = named[marker.id].name, named[marker.id].domain
    return found + there


def _spans(records: Batch) -> tuple[Batch, NDArray[np.int64]]:
    """What has begun, in the order of that, and when it ended: a mark at once."""
    starts, ends = Ranges(len(records)).pair(records)
    marks = records.where(np.flatnonzero(records["flag"] & ANY_INSTANT))
    begun = Batch(records.kind, {name: np.concatenate([starts[name], marks[name]]) for name in records.columns})
    order = np.argsort(begun["time"], kind="stable")
    return begun.where(order), np.concatenate([ends["time"], marks["time"]])[order]


def _made_markers(begun: Batch, ends: NDArray[np.int64], texts: Texts, side: Side) -> list[Marker]:
    columns = (np.maximum(begun[name], 0) for name in ("process", "thread", "device", "stream"))
    sides = np.full(len(begun), SIDES[side], object)
    return _made(
        Marker, texts[begun["name"]], sides, texts[begun["domain"]], begun["id"], begun["time"], ends, *columns
    )


def _made(record: Callable[..., Any], *columns: NDArray[Any]) -> list[Any]:
    return list(map(record, *(column.tolist() for column in columns)))


_MAKERS: dict[Kind, Callable[[Batch, Texts], list[Any]]] = {
    **dict.fromkeys(APIS, _calls),
    Kind.KERNEL: _kernels,
    Kind.COMMUNICATION: _communications,
    Kind.MARKER: _markers,
}
