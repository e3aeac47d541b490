"""Tables of `ascend_pytorch_profiler_<rank>.db`: those of the monitor's databases and the framework's, with the names,
columns and types of the vendor's guide to the Ascend PyTorch Profiler. A table without rows is not made."""

from __future__ import annotations

from collections.abc import Mapping

from npuscope.monitor.agent.processors.sqlite_schema import TABLES as MONITOR_TABLES


def _integers(names: str) -> str:
    return ", ".join(f"{name} INTEGER" for name in names.split())


TABLES: Mapping[str, str] = {
    **MONITOR_TABLES,
    "STRING_IDS": "id INTEGER PRIMARY KEY, value TEXT",
    "PYTORCH_API": _integers(
        "startNs endNs globalTid connectionId name sequenceNumber fwdThreadId inputDtypes inputShapes callchainId type"
    ),
    "CONNECTION_IDS": _integers("id connectionId"),
    "PYTORCH_CALLCHAINS": _integers("id stack stackDepth"),
    "OP_MEMORY": _integers(
        "name size allocationTime releaseTime activeReleaseTime duration activeDuration allocationTotalAllocated "
        "allocationTotalReserved allocationTotalActive releaseTotalAllocated releaseTotalReserved releaseTotalActive "
        "streamPtr deviceId"
    ),
    "MEMORY_RECORD": _integers("component timestamp totalAllocated totalReserved totalActive streamPtr deviceId"),
    "GC_RECORD": _integers("startNs endNs globalTid"),
    "CPU_USAGE": "timestampNs INTEGER, cpuId INTEGER, usage NUMERIC",
    "HOST_MEM_USAGE": "timestampNs INTEGER, usage NUMERIC",
}
"""Columns by table."""

RUNTIME_API, OPERATOR_API = 5000, 50001
"""Of ENUM_API_TYPE."""
EVERY_PROCESSOR = -1
"""In CPU_USAGE: the process on all processors together."""


def create(table: str) -> str:
    """The statement that makes a table."""
    return f"CREATE TABLE {table} ({TABLES[table]})"


def insert(table: str) -> str:
    """The statement that adds a row."""
    return f"INSERT INTO {table} VALUES ({','.join('?' * len(TABLES[table].split(',')))})"
