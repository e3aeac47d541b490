"""Who polls the daemon, and what waits for whom. No clock, no socket: every call is told the time.

One thread owns the registry, the one that answers polls; others hand it functions to call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from npuscope.monitor.protocol.config import with_trace_id
from npuscope.monitor.protocol.fabric import Channel, Context, Dialect, Poll, Status, Types

SILENCE_SECONDS = 60.0
"""A process that has not polled for so long is forgotten; so is work that nobody fetched."""
MOST_PROCESSES = 16384
MOST_HIDDEN = 1024
"""Of those, how many may be out of sight: only there can one process pass for many."""
MOST_CONTEXTS = 4096
UNKNOWN_END_SECONDS = 60.0
"""How long a process that counts steps is taken to be at work, unless it is seen to finish."""
GRACE_SECONDS = 2.0
Key = tuple[Dialect, int, int | bytes]
INDENTS = {Dialect.KINETO: 4, Dialect.MSMONITOR: 12}


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


@dataclass(frozen=True)
class Order:
    """A request to trace. `uid` None stands for a requester who may trace everybody's processes."""

    config: str
    job: int
    pids: tuple[int, ...]
    limit: int
    uid: int | None
    dialect: Dialect
    ends: float | None = None

    @property
    def everyone(self) -> bool:
        """Whether it names no process in particular."""
        return self.pids in ((), (0,))


@dataclass(frozen=True)
class Match:
    """One process that an order met, and what came of it."""

    pid: int
    sender_pid: int
    outcome: str
    trace_id: int | None = None
    user: int = -1
    state: str = ""
    launcher: bool = False
    """Whether it started others of those that the order met."""


@dataclass(frozen=True)
class Outcome:
    """What came of an order; `reason` says why when nothing was triggered."""

    matches: tuple[Match, ...]
    reason: str | None = None

    def pids(self, outcome: str | None = None) -> list[int]:
        """The processes with this outcome, or all."""
        return [match.pid for match in self.matches if outcome in (None, match.outcome)]


@dataclass
class Registry:
    """The registered processes and what is known of them."""

    host: str = "localhost"
    processes: dict[Key, Process] = field(default_factory=dict)
    contexts: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    statuses: dict[Channel, Status] = field(default_factory=dict)
    refused: int = 0
    strangers: int = 0
    """Polls from containers of which neither process nor user can be told. They get no answer."""
    _hidden: int = 0

    def poll(self, poll: Poll, sender: Sender, now: float) -> str | None:
        """Take note of a poll; returns the configuration to answer with, "" for nothing, None for no answer at all."""
        process = self._process(poll, sender, now)
        if process is None:
            self.refused += 1
            return None
        process.polls += 1
        process.last, process.types, process.job, process.pids = now, poll.types, poll.job, poll.pids
        _settle(process, now)
        work = process.pending
        if work is None or process.running or not poll.types & Types.ACTIVITIES:
            return ""
        process.pending = None
        if sender.dialect is Dialect.KINETO:  # the plug-in reports its state itself
            process.running, process.seen_busy = work, False
            process.until = (work.ends or now + UNKNOWN_END_SECONDS) + GRACE_SECONDS + now - work.asked
        return work.config

    def _process(self, poll: Poll, sender: Sender, now: float) -> Process | None:
        key = sender.key
        process = self.processes.get(key)
        if process is None or process.sender.address != sender.address:
            if process is None and self._full(sender):
                return None
            self._hidden += process is None and sender.hidden
            process = self.processes[key] = Process(sender, poll.job, poll.pids, poll.types, now, now)
        return process

    def _full(self, sender: Sender) -> bool:
        if len(self.processes) >= MOST_PROCESSES:
            return True
        return sender.hidden and self._hidden >= MOST_HIDDEN

    def undelivered(self, sender: Sender, now: float) -> None:
        """The answer to a poll could not be sent: what it held waits for the next poll."""
        process = self.processes.get(sender.key)
        if process and process.running and not process.seen_busy and process.pending is None:
            process.pending, process.running = process.running, None

    def context(self, context: Context, now: float) -> int:
        """Take note of a device in use; returns how many processes of the job use it."""
        key = (context.job, context.device)
        if key not in self.contexts and len(self.contexts) >= MOST_CONTEXTS:
            return 0
        pids = self.contexts.setdefault(key, {})
        if context.pid in pids or len(pids) < MOST_CONTEXTS:
            pids[context.pid] = now
        return len(pids)

    def status(self, status: Status) -> None:
        """Take note of what the plug-in reports."""
        self.statuses[status.channel] = status

    def senders(self) -> list[Sender]:
        """Who is registered."""
        return [process.sender for process in self.processes.values()]

    def forget(self, senders: Iterable[Sender]) -> None:
        """Drop processes that are known to have ended."""
        for sender in senders:
            if (process := self.processes.get(sender.key)) and process.sender == sender:
                self._drop(sender.key)

    def _drop(self, key: Key) -> Process:
        process = self.processes.pop(key)
        self._hidden -= process.sender.hidden
        return process

    def collect(self, now: float) -> list[Process]:
        """Forget who has been silent; returns them."""
        silent = [key for key, process in self.processes.items() if now - process.last > SILENCE_SECONDS]
        gone = [self._drop(key) for key in silent]
        alive = {process.leaf for process in self.processes.values()}
        for key, pids in list(self.contexts.items()):
            kept = {pid: seen for pid, seen in pids.items() if pid in alive or now - seen <= SILENCE_SECONDS}
            self.contexts[key] = kept
            if not kept:
                del self.contexts[key]
        return gone

    def trigger(self, order: Order, now: float) -> Outcome:
        """Lay work ready for the processes that an order names."""
        chosen = sorted(self._chosen(order), key=lambda process: sorted(process.pids))
        if not chosen:
            return Outcome((), self.why_nothing(order))
        for process in chosen:
            _settle(process, now)
        free = [process for process in chosen if not process.busy]
        # Launchers register as well; the limit is for those that do the work.
        launchers = {pid for process in chosen for pid in process.pids[1:]}
        first = sorted(free, key=lambda process: process.leaf in launchers)[: max(order.limit, 0)]
        taken = {id(process) for process in first}
        matches = tuple(self._match(process, order, now, id(process) in taken) for process in chosen)
        matches = tuple(replace(match, launcher=match.pid in launchers) for match in matches)
        if taken:
            return Outcome(matches)
        return Outcome(matches, "every matching process is busy" if not free else "the process limit is 0")

    def _match(self, process: Process, order: Order, now: float, taken: bool) -> Match:
        if not taken:
            outcome = "busy" if process.busy else "skipped"
            return Match(process.leaf, process.sender.pid, outcome, state=process.state)
        number = trace_id(self.host, process.leaf, int(now))
        text = with_trace_id(order.config, number, INDENTS[process.sender.dialect])
        process.pending = Work(text, number, now, order.ends)
        return Match(process.leaf, process.sender.pid, "triggered", number, process.sender.uid)

    def _chosen(self, order: Order) -> Iterator[Process]:
        for process in self.processes.values():
            if (
                process.sender.dialect is order.dialect
                and process.job == order.job
                and order.uid in (None, process.sender.uid)
                and (order.everyone or process.named_by(order.pids))
            ):
                yield process

    def why_nothing(self, order: Order) -> str:
        """The first condition that no process met, in words."""
        conditions: list[tuple[str, Callable[[Process], bool]]] = [
            (_NOBODY[order.dialect], lambda process: process.sender.dialect is order.dialect),
            (
                "the registered processes belong to other users",
                lambda process: order.uid in (None, process.sender.uid),
            ),
            (
                f"no process has job id {order.job}; registered: {self._jobs(order)}",
                lambda process: process.job == order.job,
            ),
            (
                f"none of the processes {', '.join(map(str, order.pids))} is registered or has a registered child",
                lambda process: order.everyone or process.named_by(order.pids),
            ),
        ]
        left = list(self.processes.values())
        for sentence, holds in conditions:
            left = [process for process in left if holds(process)]
            if not left:
                return sentence + self._unanswered(order)
        return "no process matched" + self._unanswered(order)

    def _unanswered(self, order: Order) -> str:
        """Why a process that a person has in mind may be missing, or have another number than expected."""
        notes = []
        hidden = sum(process.sender.hidden for process in self.processes.values())
        if hidden and not order.everyone:
            notes.append(f"{hidden} in containers out of the daemon's sight go by the numbers they have in there")
        if self.strangers:
            notes.append(
                f"{self.strangers} polls came from containers whose processes and users the daemon cannot tell: "
                "share the pid namespace or the user namespace"
            )
        if self.refused:
            notes.append(f"{self.refused} polls were turned away: the daemon keeps at most {MOST_PROCESSES} processes")
        return "".join(f"; {note}" for note in notes)

    def _jobs(self, order: Order) -> str:
        mine = (process for process in self.processes.values() if order.uid in (None, process.sender.uid))
        jobs = sorted({process.job for process in mine if process.sender.dialect is order.dialect})
        return ", ".join(map(str, jobs[:8])) + (", ..." if len(jobs) > 8 else "")


_NOBODY = {
    Dialect.KINETO: "no PyTorch process is registered; start it with KINETO_USE_DAEMON=1 on this host, "
    "and in a container with the daemon's KINETO_IPC_SOCKET_DIR",
    Dialect.MSMONITOR: "no process with the vendor's plug-in is registered; start it with MSMONITOR_USE_DAEMON=1",
}


def _settle(process: Process, now: float) -> None:
    """Bring what is known of a process up to date with its last poll and the time."""
    if process.pending and now - process.pending.asked > SILENCE_SECONDS:
        process.pending = None
    if process.running:
        idle = bool(process.types & Types.ACTIVITIES)
        if idle and (process.seen_busy or now > process.until):
            process.running, process.seen_busy = None, False
        elif not idle:
            process.seen_busy = True


def trace_id(host: str, pid: int, second: int) -> int:
    """The number that a trace carries: 64 bits made of where, who and when."""
    digest = hashlib.blake2b(f"{host}:{pid}:{second}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
