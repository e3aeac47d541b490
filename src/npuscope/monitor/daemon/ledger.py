"""Which traces were asked for, and what has come of each: told from the files, since no client reports it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from npuscope.monitor.daemon.process import GRACE_SECONDS, UNKNOWN_END_SECONDS
from npuscope.monitor.protocol.fabric import Dialect
from npuscope.monitor.trace_file import State, look

MOST = 512
"""Traces that are remembered; the oldest are forgotten first."""
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
    seen = look(asked.file, asked.asked, now)
    if seen.state is State.WHOLE:
        return {"outcome": "written", "size": seen.size, "written": now - seen.quiet}
    if not alive:
        return {"outcome": "exited"}
    if now <= (asked.ends or asked.asked + UNKNOWN_END_SECONDS) + GRACE_SECONDS + WRITING_SECONDS:
        return {"outcome": "writing"} | ({"size": seen.size} if seen.state is State.WRITING else {})
    if seen.state is State.EMPTY:
        return {"outcome": "empty"}
    return {"outcome": "missing" if asked.pid == asked.host_pid else "unseen"}
