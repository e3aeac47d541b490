"""A registered process: who it is, what it can take, what it has before it. Every call is told the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from npuscope.monitor.protocol.audience import is_for_monitor
from npuscope.monitor.protocol.fabric import Dialect, Types

SILENCE_SECONDS = 60.0
"""A process that has not polled for so long is forgotten; so is work that nobody fetched."""
UNKNOWN_END_SECONDS = 60.0
"""How long a process that counts steps is taken to be at work, unless it is seen to finish."""
GRACE_SECONDS = 2.0
MOST_QUEUED = 16
"""Orders to one monitor that may wait for its polls."""
MOST_PROCESSES = 16384
"""So many are kept."""
Key = tuple[Dialect, int, int | bytes]


@dataclass(frozen=True)
class Sender:
    """Who sent a datagram, as the kernel says it."""

    dialect: Dialect
    pid: int
    uid: int
    address: bytes

    @property
    def hidden(self) -> bool:
        """Whether it lives in a container whose process numbers the daemon does not see."""
        return self.pid <= 0

    @property
    def key(self) -> Key:
        """What tells it from others; the address does where there is no number."""
        return (self.dialect, self.uid, self.address if self.hidden else self.pid)


@dataclass(frozen=True)
class Work:
    """A configuration for one process, with the number of its trace."""

    config: str
    trace_id: int
    asked: float
    ends: float | None


@dataclass(frozen=True)
class Task:
    """What a process is running, and when it was told."""

    key: Key
    leaf: int
    work: Work
    told: float


@dataclass
class Process:
    """A registered process. `pids` is itself, as it sees itself, then its ancestors."""

    sender: Sender
    job: int
    pids: tuple[int, ...]
    types: Types
    first: float
    last: float
    polls: int = 0
    pending: Work | None = None
    running: Work | None = None
    queued: list[Work] = field(default_factory=list)
    """What is to become pending afterwards, in this order."""
    fetched: Work | None = None
    """The last that was handed out."""
    told: float = 0.0
    """When it was handed what it is running."""
    until: float = 0.0
    seen_busy: bool = False

    @property
    def leaf(self) -> int:
        """The number by which requests and files name it."""
        return self.pids[0]

    def named_by(self, pids: tuple[int, ...]) -> bool:
        """Whether any of the numbers is its own, here or inside its container, or an ancestor's."""
        return not {self.sender.pid, *self.pids}.isdisjoint(pids)

    @property
    def state(self) -> str:
        """What a person is told of it."""
        if self.pending:
            return "waiting"
        if self.running:
            return "tracing" if self.seen_busy else "delivered"
        return "idle" if self.types & Types.ACTIVITIES else "busy"

    @property
    def busy(self) -> bool:
        """Whether it cannot take work now."""
        return self.state != "idle"

    def takes(self, config: str) -> bool:
        """Whether work may be laid ready for it: where it has none, or where a monitor is to be told one more thing,
        for a stop that comes right after a start must not be turned away."""
        if not self.busy:
            return True
        waits = self.pending is not None and is_for_monitor(self.pending.config.lstrip())
        return waits and is_for_monitor(config) and len(self.queued) < MOST_QUEUED

    def lay(self, work: Work) -> None:
        """Lay work ready."""
        if self.pending is None:
            self.pending = work
        else:
            self.queued.append(work)

    def settle(self, now: float) -> None:
        """Bring what is known of it up to date with its last poll and the time."""
        while self.pending and now - self.pending.asked > SILENCE_SECONDS:
            self.pending = self.queued.pop(0) if self.queued else None
        if self.running:
            idle = bool(self.types & Types.ACTIVITIES)
            if idle and (self.seen_busy or now > self.until):
                self.running, self.seen_busy = None, False
            elif not idle:
                self.seen_busy = True

    def fetch(self, now: float) -> Work | None:
        """What lies ready for it, which is then its own to carry out."""
        work = self.pending
        if work is None or self.running or not self.types & Types.ACTIVITIES:
            return None
        self.pending, self.fetched = self.queued.pop(0) if self.queued else None, work
        if self.sender.dialect is Dialect.KINETO:  # the plug-in reports its state itself
            self.running, self.told, self.seen_busy = work, now, False
            self.until = (work.ends or now + UNKNOWN_END_SECONDS) + GRACE_SECONDS + now - work.asked
        return work

    def give_back(self) -> None:
        """What it was to fetch did not reach it, and waits for its next poll."""
        if self.fetched is None or self.seen_busy:
            return
        if self.pending is not None:
            if not is_for_monitor(self.fetched.config.lstrip()):
                return
            self.queued.insert(0, self.pending)
        self.pending, self.fetched, self.running = self.fetched, None, None


def launchers(processes: Iterable[Process]) -> frozenset[int]:
    """The numbers of those that started others of these processes, as these others know them."""
    return frozenset(pid for process in processes for pid in process.pids[1:])
