"""Tables of `ascend_pytorch_profiler_<rank>.db`: names, columns and types as the vendor's guide lists them. A table
for which a trace has no rows is not made."""

from __future__ import annotations

from collections.abc import Mapping

_TIMES = {"startNs": "INTEGER", "endNs": "INTEGER"}
_ENUMERATION = {"id": "INTEGER PRIMARY KEY", "name": "TEXT"}


def _integers(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "INTEGER")


SCHEMA: Mapping[str, Mapping[str, str]] = {
    "STRING_IDS": {"id": "INTEGER PRIMARY KEY", "value": "TEXT"},
    "META_DATA": {"name": "TEXT", "value": "TEXT"},
    "HOST_INFO": {"hostUid": "TEXT", "hostName": "TEXT"},
    "SESSION_TIME_INFO": {"startTimeNs": "INTEGER", "endTimeNs": "INTEGER"},
    "RANK_DEVICE_MAP": _integers("rankId deviceId"),
    "NPU_INFO": {"id": "INTEGER", "name": "TEXT"},
    "ENUM_API_TYPE": _ENUMERATION,
    "ENUM_HCCL_DATA_TYPE": _ENUMERATION,
    "ENUM_MSTX_EVENT_TYPE": _ENUMERATION,
    "PYTORCH_API": _integers(
        "startNs endNs globalTid connectionId name sequenceNumber fwdThreadId inputDtypes inputShapes callchainId type"
    ),
    "CONNECTION_IDS": _integers("id connectionId"),
    "PYTORCH_CALLCHAINS": _integers("id stack stackDepth"),
    "STEP_TIME": {"id": "INTEGER", **_TIMES},
    "CANN_API": _integers("startNs endNs type globalTid connectionId name"),
    "TASK": _integers(
        "startNs endNs deviceId connectionId globalTaskId globalPid taskType contextId streamId taskId modelId"
    ),
    "COMPUTE_TASK_INFO": _integers(
        "name globalTaskId blockNum mixBlockNum taskType opType inputFormats inputDataTypes inputShapes outputFormats "
        "outputDataTypes outputShapes attrInfo opState hf32Eligible"
    ),
    "COMMUNICATION_OP": {
        **_integers("opName startNs endNs connectionId groupName opId relay retry dataType algType"),
        "count": "NUMERIC",
        **_integers("opType deviceId"),
    },
    "MSTX_EVENTS": _integers(
        "startNs endNs eventType rangeId category message globalTid endGlobalTid domainId connectionId"
    ),
    "OP_MEMORY": _integers(
        "name size allocationTime releaseTime activeReleaseTime duration activeDuration allocationTotalAllocated "
        "allocationTotalReserved allocationTotalActive releaseTotalAllocated releaseTotalReserved releaseTotalActive "
        "streamPtr deviceId"
    ),
    "MEMORY_RECORD": _integers("component timestamp totalAllocated totalReserved totalActive streamPtr deviceId"),
    "GC_RECORD": {**_TIMES, "globalTid": "INTEGER"},
    "CPU_USAGE": {"timestampNs": "INTEGER", "cpuId": "INTEGER", "usage": "NUMERIC"},
    "HOST_MEM_USAGE": {"timestampNs": "INTEGER", "usage": "NUMERIC"},
}
"""Columns and their types, by table."""

VERSION = {
    "SCHEMA_VERSION_MICRO": "1", "SCHEMA_VERSION_MINOR": "2", "SCHEMA_VERSION_MAJOR": "0", "SCHEMA_VERSION": "1.2.0",
}  # fmt: skip
"""As the vendor writes it."""
API_TYPES = {
    5000: "runtime", 5500: "communication", 10000: "node", 15000: "model", 20000: "acl", 50001: "op", 50002: "queue",
    50003: "trace", 50004: "mstx",
}  # fmt: skip
RUNTIME_API, OPERATOR_API, PYTHON_API = 5000, 50001, 50003
EVENT_TYPES = {0: "marker", 1: "push/pop", 2: "start/end", 3: "marker_ex"}
UNSET = 2**32 - 1
"""Stands where a number does not apply."""
MARK_CONNECTIONS = 4_000_000_000
"""Added to the number of a mark."""
EVERY_PROCESSOR = -1
"""In CPU_USAGE: the process on all processors together."""


def create(table: str) -> str:
    """The statement that makes a table."""
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in SCHEMA[table].items())})"


def insert(table: str) -> str:
    """The statement that adds a row."""
    return f"INSERT INTO {table} VALUES ({','.join('?' * len(SCHEMA[table]))})"
