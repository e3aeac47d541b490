"""Which traces were asked for, and what has come of each: told from the files, since no client reports it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from npuscope.monitor.daemon.registry import GRACE_SECONDS, UNKNOWN_END_SECONDS
from npuscope.monitor.protocol.fabric import Dialect

MOST = 512
"""Traces that are remembered; the oldest are forgotten first."""
CLOCK_SECONDS = 2.0
"""File times may lag behind the clock."""
WRITING_SECONDS = 30.0
"""How long after its end a trace may take to appear before it counts as missing."""


@dataclass(frozen=True)
class Asked:
    """One trace of one process."""

    trace_id: int
    pid: int
    host_pid: int
    user: int
    job: int
    rank: int | None
    command: str
    client: Dialect
    file: str
    measure: str
    asked: float
    ends: float | None


class Ledger:
    """The traces asked for since the daemon started."""

    def __init__(self) -> None:
        self._entries: deque[Asked] = deque(maxlen=MOST)

    def note(self, asked: Asked) -> None:
        """Remember a trace."""
        self._entries.append(asked)

    def newest_first(self) -> list[Asked]:
        """All that are remembered."""
        return list(reversed(list(self._entries)))


def measure(pairs: Mapping[str, str]) -> str:
    """How much is traced, for people."""
    steps = pairs.get("ACTIVITIES_ITERATIONS", "0")
    if steps.isdigit() and int(steps) > 0:
        return f"{int(steps)} step" + ("s" if int(steps) > 1 else "")
    if "NPU_MONITOR_START" in pairs:
        return "monitor"
    milliseconds = pairs.get("ACTIVITIES_DURATION_MSECS", "500")
    if not milliseconds.isdigit():
        return ""
    return f"{int(milliseconds) / 1000:g} s" if int(milliseconds) >= 1000 else f"{int(milliseconds)} ms"


def told(asked: Asked, active: Collection[int], alive: bool, now: float) -> dict[str, Any]:
    """A trace and its outcome: `active` are the numbers of those that a process still has before it.

    Outcomes: active, handed over (to the plug-in, which reports no end), written, writing, empty (the process
    refused), exited (before it was written), unseen (written inside a container, whose files may lie elsewhere),
    missing.
    """
    shown: dict[str, Any] = {
        "traceId": asked.trace_id,
        "pid": asked.pid,
        "user": asked.user,
        "job": asked.job,
        "rank": asked.rank,
        "command": asked.command,
        "client": asked.client.value,
        "file": asked.file,
        "measure": asked.measure,
        "asked": asked.asked,
        "ends": asked.ends,
    }
    if asked.trace_id in active:
        return shown | {"outcome": "active"}
    if asked.client is Dialect.MSMONITOR:
        return shown | {"outcome": "handed over"}
    return shown | _found(asked, alive, now)


def _found(asked: Asked, alive: bool, now: float) -> dict[str, Any]:
    if (file := _fresh(asked.file, asked.asked)) and file.st_size:
        return {"outcome": "written", "size": file.st_size, "written": file.st_mtime}
    over = now > (asked.ends or asked.asked + UNKNOWN_END_SECONDS) + GRACE_SECONDS + WRITING_SECONDS
    partial = _fresh(asked.file + ".tmp", asked.asked)
    if alive and partial and not over:
        return {"outcome": "writing", "size": partial.st_size}
    if not alive:
        return {"outcome": "exited"}
    if not over:
        return {"outcome": "writing"}
    if partial and not partial.st_size:
        return {"outcome": "empty"}
    return {"outcome": "missing" if asked.pid == asked.host_pid else "unseen"}


def _fresh(path: str, since: float) -> os.stat_result | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found if found.st_mtime >= since - CLOCK_SECONDS else None
