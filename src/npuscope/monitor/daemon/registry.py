"""Who polls the daemon, and what waits for whom. No clock, no socket: every call is told the time.

One thread owns the registry, the one that answers polls; others hand it functions to call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from npuscope.monitor.daemon.order import Match, Order, Outcome
from npuscope.monitor.daemon.process import MOST_PROCESSES, SILENCE_SECONDS, Key, Process, Sender, Task, Work, launchers
from npuscope.monitor.daemon.reports import Reports
from npuscope.monitor.daemon.unmatched import Unanswered, why_nothing
from npuscope.monitor.protocol.audience import is_for_monitor, names_ranks
from npuscope.monitor.protocol.config import with_trace_id
from npuscope.monitor.protocol.fabric import Context, Dialect, Poll, Status

MOST_HIDDEN = 1024
"""Of the processes, how many may be out of sight: only there can one process pass for many."""
MOST_CONTEXTS = 4096
INDENTS = {Dialect.KINETO: 4, Dialect.MSMONITOR: 12}


@dataclass
class Registry:
    """The registered processes and what is known of them."""

    host: str = "localhost"
    processes: dict[Key, Process] = field(default_factory=dict)
    contexts: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    reports: Reports = field(default_factory=Reports)
    unanswered: Unanswered = field(default_factory=Unanswered)
    _hidden: int = 0

    def poll(self, poll: Poll, sender: Sender, now: float) -> str | None:
        """Take note of a poll; returns the configuration to answer with, "" for nothing, None for no answer at all."""
        process = self._process(poll, sender, now)
        if process is None:
            self.unanswered.refused += 1
            return None
        process.polls += 1
        process.last, process.types, process.job, process.pids = now, poll.types, poll.job, poll.pids
        process.settle(now)
        work = process.fetch(now)
        return work.config if work else ""

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

    def undelivered(self, sender: Sender) -> None:
        """The answer to a poll could not be sent: what it held waits for the next poll."""
        if process := self.processes.get(sender.key):
            process.give_back()

    def context(self, context: Context, now: float) -> int:
        """Take note of a device in use; returns how many processes of the job use it."""
        key = (context.job, context.device)
        if key not in self.contexts and len(self.contexts) >= MOST_CONTEXTS:
            return 0
        pids = self.contexts.setdefault(key, {})
        if context.pid in pids or len(pids) < MOST_CONTEXTS:
            pids[context.pid] = now
        return len(pids)

    def status(self, status: Status, sender: Sender) -> None:
        """Take note of what a plug-in or an agent reports."""
        self.reports.note(status, sender)

    def senders(self) -> list[Sender]:
        """Who is registered."""
        return [process.sender for process in self.processes.values()]

    def forget(self, senders: Iterable[Sender]) -> list[Process]:
        """Drop processes that are known to have ended; returns those that were still here."""
        here = [sender for sender in senders if (one := self.processes.get(sender.key)) and one.sender == sender]
        return [self._drop(sender.key) for sender in here]

    def tasks(self) -> list[Task]:
        """What the processes are running; not of those in containers, which may write to other files of the name."""
        everybody = [(key, one) for key, one in self.processes.items() if one.leaf == one.sender.pid]
        return [Task(key, one.leaf, one.running, one.told) for key, one in everybody if one.running]

    def finished(self, tasks: Iterable[Task]) -> None:
        """Take note that these are done."""
        for task in tasks:
            if (process := self.processes.get(task.key)) and process.running is task.work:
                process.running, process.seen_busy = None, False

    def _drop(self, key: Key) -> Process:
        process = self.processes.pop(key)
        self._hidden -= process.sender.hidden
        if process.sender.hidden:  # nothing else will tell that it has ended
            self.reports.drop([process.sender])
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
            return Outcome((), why_nothing(self.processes.values(), order, self.unanswered))
        for process in chosen:
            process.settle(now)
        free = [process for process in chosen if process.takes(order.config)]
        # Launchers register as well; the limit is for those that do the work.
        parents = launchers(chosen)
        first = sorted(free, key=lambda process: process.leaf in parents)[: _limit(order, len(free))]
        taken = {process.sender.key for process in first}
        matches = tuple(self._match(process, order, now, process.sender.key in taken, parents) for process in chosen)
        if taken:
            return Outcome(matches)
        return Outcome(matches, "every matching process is busy" if not free else "the process limit is 0")

    def _match(self, process: Process, order: Order, now: float, taken: bool, parents: frozenset[int]) -> Match:
        leaf, sender, launcher = process.leaf, process.sender, process.leaf in parents
        if not taken:
            outcome = "skipped" if process.takes(order.config) else "busy"
            return Match(leaf, sender.pid, outcome, None, sender.uid, process.state, launcher)
        number = trace_id(self.host, leaf, int(now))
        text = with_trace_id(order.config, number, INDENTS[sender.dialect])
        process.lay(Work(text, number, now, order.ends))
        return Match(leaf, sender.pid, "triggered", number, sender.uid, process.state, launcher)

    def chosen(self, order: Order) -> list[Sender]:
        """The processes that an order names."""
        return [process.sender for process in self._chosen(order)]

    def _chosen(self, order: Order) -> Iterator[Process]:
        for process in self.processes.values():
            if (
                process.sender.dialect is order.dialect
                and process.job == order.job
                and order.uid in (None, process.sender.uid)
                and (order.everyone or process.named_by(order.pids))
            ):
                yield process


def _limit(order: Order, most: int) -> int:
    """How many processes may be told. A monitor's order is for all: its command line has no flag for this and always
    sends 3, which is one a node where the vendor's plug-in is at work. So is one that lists ranks: they choose."""
    return most if is_for_monitor(order.config) or names_ranks(order.config) else max(order.limit, 0)


def trace_id(host: str, pid: int, second: int) -> int:
    """The number that a trace carries: 64 bits made of where, who and when."""
    digest = hashlib.blake2b(f"{host}:{pid}:{second}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
