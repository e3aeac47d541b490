"""The tables of a database, as the vendor's plug-in has them and its analysis tools join them (monitor formats, 4.2 to
4.5). `STEP_TIME` is not the plug-in's: it is what the same tools read of a profiler's database to tell steps apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuscope.monitor.activity.kinds import DATA_TYPES, Kind

COMPUTE_COLUMNS = (
    "name", "globalTaskId", "blockNum", "mixBlockNum", "taskType", "opType", "inputFormats", "inputDataTypes",
    "inputShapes", "outputFormats", "outputDataTypes", "outputShapes", "attrInfo", "opState", "hf32Eligible",
)  # fmt: skip


def _integers(*names: str) -> str:
    return ", ".join(f"{name} INTEGER" for name in names)


ENUM = "id INTEGER PRIMARY KEY, name TEXT"
TABLES: Mapping[str, str] = {
    "STRING_IDS": "id INTEGER, value TEXT",
    "SESSION_TIME_INFO": _integers("startTimeNs", "endTimeNs"),
    "ENUM_MSTX_EVENT_TYPE": ENUM,
    "ENUM_HCCL_DATA_TYPE": ENUM,
    "ENUM_API_TYPE": ENUM,
    "META_DATA": "name TEXT, value TEXT",
    "HOST_INFO": "hostUid TEXT, hostName TEXT",
    "NPU_INFO": "id INTEGER, name TEXT",
    "RANK_DEVICE_MAP": _integers("rankId", "deviceId"),
    "CANN_API": _integers("startNs", "endNs", "type", "globalTid", "connectionId", "name"),
    "TASK": _integers(
        "startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "globalPid", "taskType", "contextId",
        "streamId", "taskId", "modelId",
    ),
    "COMPUTE_TASK_INFO": _integers(*COMPUTE_COLUMNS),
    "COMMUNICATION_OP": _integers(
        "opName", "startNs", "endNs", "connectionId", "groupName", "opId", "relay", "retry", "dataType", "algType",
    ) + ", count NUMERIC, " + _integers("opType", "deviceId"),
    "MSTX_EVENTS": _integers(
        "startNs", "endNs", "eventType", "rangeId", "category", "message", "globalTid", "endGlobalTid", "domainId",
        "connectionId",
    ),
    "STEP_TIME": _integers("id", "startNs", "endNs"),
}  # fmt: skip
"""Columns by table."""
DATA = frozenset({"CANN_API", "TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP", "MSTX_EVENTS", "STEP_TIME"})
"""Tables that are made when their first rows come; the others are there from the beginning."""

CONSTANT: Mapping[str, Sequence[tuple[object, str]]] = {
    "ENUM_MSTX_EVENT_TYPE": [(0, "marker"), (1, "push/pop"), (2, "start/end"), (3, "marker_ex")],
    "ENUM_API_TYPE": [
        (5000, "runtime"), (5500, "communication"), (10000, "node"), (15000, "model"), (20000, "acl"),
        (50001, "op"), (50002, "queue"), (50003, "trace"), (50004, "mstx"),
    ],
    "ENUM_HCCL_DATA_TYPE": list(DATA_TYPES.items()),
    # The parts and the whole disagree in the vendor's files; readers may look at either.
    "META_DATA": [
        ("SCHEMA_VERSION_MICRO", "1"), ("SCHEMA_VERSION_MINOR", "2"), ("SCHEMA_VERSION_MAJOR", "0"),
        ("SCHEMA_VERSION", "1.2.0"),
    ],
}  # fmt: skip
"""Rows that every database has."""

API_TYPES: Mapping[Kind, int] = {
    Kind.API: 10000, Kind.NODE_API: 10000, Kind.ACL_API: 20000, Kind.RUNTIME_API: 5000
}  # fmt: skip
NOT_KNOWN = 2**32 - 1
"""In columns for which no record has a value."""
MARK_OFFSET = 4_000_000_000
"""Added to a marker's id, so that it is no other record's `connectionId`."""
INSTANT, RANGE = 0, 2
"""`MSTX_EVENTS.eventType`."""
MARK_TASK = "MsTx"
NOT_AVAILABLE = "N/A"
UNKNOWN_NPU = "UNKNOWN"
GROUPS = "parallel_group_info"
"""The row of `META_DATA` that holds the process groups."""


def created(table: str) -> str:
    """The statement that makes a table unless it is there."""
    return f"CREATE TABLE IF NOT EXISTS {table} ({TABLES[table]})"
