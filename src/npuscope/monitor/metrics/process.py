"""What registered processes use: processor time, memory, threads, files, input and output."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import psutil

from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.metrics.attribution import belongings
from npuscope.monitor.metrics.record import PROCESS, Record, Value
from npuscope.monitor.proc import user_name

REST = 9.0
"""How often the time that looking at a process took is then left to others, so that polls are answered meanwhile."""
LONGEST_REST_SHARE = 0.5
"""How much of an interval all rests may take together."""


@dataclass(frozen=True)
class Subject:
    """A process to look at. `pid` is its number in the daemon's namespace."""

    pid: int
    uid: int
    client: str
    job: int = 0


@dataclass(frozen=True)
class Usage:
    """What a process has used at one moment; None where the daemon may not look."""

    time: float
    user: float
    system: float
    rss: int
    shared: int
    threads: int
    read: int | None = None
    written: int | None = None
    files: int | None = None
    voluntary: int | None = None
    involuntary: int | None = None


def process_values(before: Usage | None, after: Usage) -> dict[str, Value]:
    """The metrics of a process; `cpu_percent`, of one processor, only when there is an earlier look."""
    values: dict[str, Value | None] = {
        "cpu_user_seconds": after.user,
        "cpu_system_seconds": after.system,
        "rss_bytes": after.rss,
        "shared_bytes": after.shared,
        "threads": after.threads,
        "read_bytes": after.read,
        "write_bytes": after.written,
        "open_files": after.files,
        "voluntary_switches": after.voluntary,
        "involuntary_switches": after.involuntary,
    }
    if before and after.time > before.time:
        busy = after.user + after.system - before.user - before.system
        values["cpu_percent"] = 100 * max(0.0, busy) / (after.time - before.time)
    return {name: value for name, value in values.items() if value is not None}


def look(process: psutil.Process) -> Usage:
    """What the process uses. Raises psutil.Error or OSError when it is gone."""
    with process.oneshot():
        now = time.monotonic()
        cpu, memory = process.cpu_times(), process.memory_info()
        threads, switches = process.num_threads(), process.num_ctx_switches()
    usage: dict[str, int | None] = {"read": None, "written": None, "files": None}
    with contextlib.suppress(psutil.AccessDenied, PermissionError):
        counters = process.io_counters()
        usage |= {"read": counters.read_bytes, "written": counters.write_bytes}
        usage["files"] = process.num_fds()
    return Usage(
        now, cpu.user, cpu.system, memory.rss, memory.shared, threads,
        voluntary=switches.voluntary, involuntary=switches.involuntary, **usage,
    )  # fmt: skip


def subjects(registry: Registry) -> list[Subject]:
    """The registered processes, each once. Called on the reader's thread, so it does no more than copy."""
    found: dict[int, Subject] = {}
    for process in registry.processes.values():
        sender = process.sender
        if sender.pid > 0:
            found.setdefault(sender.pid, Subject(sender.pid, sender.uid, sender.dialect.value, process.job))
    return list(found.values())


@dataclass(frozen=True)
class Known:
    """A process that has been looked at."""

    process: psutil.Process
    usage: Usage
    labels: dict[str, str]


class Processes:
    """The source of the processes' metrics."""

    name = "processes"

    def __init__(
        self,
        registered: Callable[[], Iterable[Subject]],
        from_environment: bool = True,
        rest: Callable[[float], object] = time.sleep,
        interval: float = 10.0,
    ) -> None:
        self._registered = registered
        self._from_environment = from_environment
        self._rest = rest
        self._interval = interval
        self._known: dict[int, Known] = {}

    def sample(self) -> Iterator[Record]:
        """One record of each process; one that vanishes or that may not be seen has none."""
        wanted = list(self._registered())
        longest = LONGEST_REST_SHARE * self._interval / max(len(wanted), 1)
        alive = {subject.pid for subject in wanted}
        self._known = {pid: known for pid, known in self._known.items() if pid in alive}
        for subject in wanted:
            begin = time.perf_counter()
            with contextlib.suppress(psutil.Error, OSError):
                yield self._record(subject)
            self._rest(min(REST * (time.perf_counter() - begin), longest))

    def _record(self, subject: Subject) -> Record:
        process = psutil.Process(subject.pid)
        known = self._known.get(subject.pid)
        if known and known.process != process:  # the same number, another start
            known = None
        usage = look(process)
        labels = known.labels if known else self._labels(subject)
        self._known[subject.pid] = Known(process, usage, labels)
        values = process_values(known.usage if known else None, usage)
        return Record(time.time(), PROCESS, labels | {"job": str(subject.job)}, values)

    def _labels(self, subject: Subject) -> dict[str, str]:
        found = belongings(subject.pid, self._from_environment)
        own = {"client": subject.client, "uid": str(subject.uid), "user": user_name(subject.uid)}
        return found.owner | found.process | own
