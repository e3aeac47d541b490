"""What /proc says of a registered process: looked up by whoever has time for it, never by the thread that answers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import psutil

from npuscope.monitor.daemon.process import Process
from npuscope.monitor.proc import command, environment, gone, rank, user_of

LEAST_SILENCE_SECONDS = 15.0
"""Three times the longest usual time between polls."""
MOST_REMEMBERED = 32768


@dataclass(frozen=True)
class Details:
    """What stays the same while a process lives."""

    command: str = ""
    rank: int | None = None
    started: float | None = None


def numbers(pid: int, host_pid: int) -> dict[str, Any]:
    """How a process is told from others: `pid` is its number as it knows itself, by which requests and files name it.

    One in a container has `container`, and `hostPid` where the daemon sees it: its number outside.
    """
    if pid == host_pid:
        return {"pid": pid}
    found: dict[str, Any] = {"pid": pid, "container": True}
    return found | {"hostPid": host_pid} if host_pid > 0 else found


class Lookups:
    """Remembers the details of processes: a look into /proc for each poll of a page would cost too much."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, float], Details] = {}

    def of(self, process: Process) -> Details:
        """The details of a process, as they were when it was first asked for."""
        key = (process.sender.pid, process.first)
        if (known := self._known.get(key)) is not None:
            return known
        details = look_up(process.sender.pid, process.sender.uid)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = details
        return details


def look_up(pid: int, uid: int) -> Details:
    """The details of the process `pid`; none when it is gone, or when its number is another user's by now."""
    if user_of(pid) != uid:
        return Details()
    started = None
    with contextlib.suppress(psutil.Error):
        started = psutil.Process(pid).create_time()
    return Details(command(pid), rank(environment(pid)), started)


def health(process: Process, now: float) -> str | None:
    """What is wrong with a process: "exited", "stopped" (by a signal), "silent" (runs and does not poll), or None."""
    if process.sender.hidden:  # only its polls tell
        return None if now - process.last <= patience(process) else "silent"
    if gone(process.sender.pid):
        return "exited"
    if now - process.last <= patience(process):
        return None
    try:
        state = psutil.Process(process.sender.pid).status()
    except psutil.Error:
        return "exited"
    if state in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
        return "exited"
    return "stopped" if state in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) else "silent"


def patience(process: Process) -> float:
    """After how many seconds without a poll a process counts as silent: some of its own usual periods."""
    period = (process.last - process.first) / (process.polls - 1) if process.polls > 1 else 0.0
    return max(LEAST_SILENCE_SECONDS, 3 * period)
