"""What the callbacks of the vendor's ``mspti`` package get, under its names."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from npuscope.monitor.activity.kinds import DATA_TYPES, Flag, Kind, Side


class MsptiResult(enum.IntEnum):
    """What came of a call."""

    MSPTI_SUCCESS = 0
    MSPTI_ERROR_INVALID_PARAMETER = 1
    MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 2
    MSPTI_ERROR_MAX_LIMIT_REACHED = 3
    MSPTI_ERROR_DEVICE_OFFLINE = 4
    MSPTI_ERROR_QUEUE_EMPTY = 5
    MSPTI_ERROR_INNER = 999


def _named(name: str, prefix: str, values: dict[str, int]) -> Any:
    return enum.IntEnum(name, {f"{prefix}{word}": value for word, value in values.items()}, module=__name__)


MsptiActivityKind = _named(
    "MsptiActivityKind", "MSPTI_ACTIVITY_KIND_",
    {"INVALID": 0, **{kind.name: kind.value for kind in Kind}, "EXTERNAL_CORRELATION": 8, "COUNT": 13},
)  # fmt: skip
MsptiActivityFlag = _named(
    "MsptiActivityFlag", "MSPTI_ACTIVITY_FLAG_",
    {"NONE": 0, **{f"MARKER_{flag.name}".replace("INSTANT", "INSTANTANEOUS"): flag.value for flag in Flag}},
)  # fmt: skip
MsptiActivitySourceKind = _named(
    "MsptiActivitySourceKind", "MSPTI_ACTIVITY_SOURCE_KIND_", {side.name: side.value for side in Side}
)
MsptiCommunicationDataType = _named(
    "MsptiCommunicationDataType", "MSPTI_ACTIVITY_COMMUNICATION_", {name: value for value, name in DATA_TYPES.items()}
)


@dataclass(slots=True)
class KernelData:
    """A computing operator; times in nanoseconds here and below."""

    kind: Any = MsptiActivityKind(Kind.KERNEL)
    start: int = 0
    end: int = 0
    device_id: int = 0
    stream_id: int = 0
    correlation_id: int = 0
    type: str = ""
    name: str = ""


@dataclass(slots=True)
class HcclData:
    """A communication operator, with its bandwidth in GB/s."""

    kind: Any = MsptiActivityKind(Kind.HCCL)
    start: int = 0
    end: int = 0
    device_id: int = 0
    stream_id: int = 0
    bandwidth: float = 0.0
    name: str = ""
    comm_name: str = ""


@dataclass(slots=True)
class CommunicationData:
    """A communication operator, with what it moved."""

    kind: Any = MsptiActivityKind(Kind.COMMUNICATION)
    data_type: Any = None
    count: int = 0
    device_id: int = 0
    stream_id: int = 0
    start: int = 0
    end: int = 0
    alg_type: str = ""
    name: str = ""
    comm_name: str = ""
    correlation_id: int = 0


@dataclass(slots=True)
class MsptiObjectId:
    """Where a marker was taken; what does not apply to its side is 0."""

    process_id: int = 0
    thread_id: int = 0
    device_id: int = 0
    stream_id: int = 0


@dataclass(slots=True)
class MarkerData:
    """A mark."""

    kind: Any = MsptiActivityKind(Kind.MARKER)
    flag: Any = None
    source_kind: Any = None
    timestamp: int = 0
    id: int = 0
    object_id: MsptiObjectId = field(default_factory=MsptiObjectId)
    name: str = ""
    domain: str = ""


@dataclass(slots=True)
class RangeMarkerData:
    """A range that is over."""

    kind: Any = MsptiActivityKind(Kind.MARKER)
    source_kind: Any = None
    id: int = 0
    object_id: MsptiObjectId = field(default_factory=MsptiObjectId)
    name: str = ""
    domain: str = ""
    start: int = 0
    end: int = 0
