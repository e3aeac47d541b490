"""The one thread that reads the IPC sockets and answers polls.

A client waits for its answer for less than 100 ms, so nothing here logs, parses JSON, resolves names or takes a lock
that another thread may hold. Others reach the registry by handing over a function, which is called between datagrams.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import TypeVar

from npuscope.monitor.daemon.addresses import Address, leave, listen
from npuscope.monitor.daemon.identity import CREDENTIALS_SPACE, ROOT, Identities, credentials, overflow_user, own_user
from npuscope.monitor.daemon.inbox import Inbox, Letter
from npuscope.monitor.daemon.process import SILENCE_SECONDS, Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.protocol.fabric import (
    Context,
    Data,
    Dialect,
    Malformed,
    Message,
    Poll,
    Status,
    config_reply,
    context_reply,
    decode,
)

T = TypeVar("T")
LARGEST_DATAGRAM = 65536
BURST = 64
"""Datagrams read from one socket before the others get their turn."""
RETRY_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
MOST_EVENTS = 10_000
MOST_DOUBTS = 100
"""So many lines a daemon writes about messages that it does not answer."""
FULL = frozenset({errno.EAGAIN, errno.ENOBUFS})


@dataclass
class Answer:
    """A datagram that could not be sent at once, because its receiver's queue was full."""

    endpoint: socket.socket
    sender: Sender
    datagram: bytes
    holds_work: bool
    tries: int = 0
    due: float = 0.0


@dataclass
class Counts:
    """What went by."""

    polls: int = 0
    malformed: int = 0
    impostors: int = 0
    unsent: int = 0
    faults: int = 0
    data: int = 0
    data_refused: int = 0
    lines_lost: int = 0


class Reader:
    """Sockets, registry and the thread that serves them."""

    def __init__(self, addresses: Sequence[Address], registry: Registry) -> None:
        """Bind the sockets. Raises UserError when one cannot be had."""
        self.registry = registry
        self.counts = Counts()
        self.events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Lines for the log, for somebody with time; None is the last."""
        self.inbox = Inbox()
        """Measurements, for somebody else with time."""
        self._identities = Identities()
        self._unknown_user = overflow_user()
        self._reporters = (ROOT, own_user())
        self._selector = selectors.DefaultSelector()
        self._bound: list[tuple[Address, socket.socket]] = []
        self._calls: deque[Callable[[], None]] = deque()
        self._late: deque[Answer] = deque()
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stopping = False
        self._next_collection = 0.0
        self._thread = threading.Thread(target=self._run, name="ipc-reader", daemon=True)
        try:
            for address in addresses:
                endpoint = listen(address)
                self._bound.append((address, endpoint))
                self._selector.register(endpoint, selectors.EVENT_READ, address)
        except BaseException:
            self._close()
            raise
        self._selector.register(self._wake, selectors.EVENT_READ, None)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and take the socket files away."""
        self._stopping = True
        self._nudge()
        if self._thread.is_alive():
            self._thread.join()
        self._close()

    def call(self, function: Callable[[Registry], T], timeout: float = 5.0) -> T:
        """Have a short function called with the registry, between two datagrams; returns its result."""
        if self._stopping:
            raise RuntimeError("the reader has stopped")
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function(self.registry))
            except BaseException as error:
                future.set_exception(error)

        self._calls.append(run)
        self._nudge()
        return future.result(timeout)

    def note(self, line: str) -> None:
        """Have a line written to the log. Any thread may call it, and never waits."""
        if self.events.qsize() < MOST_EVENTS:
            self.events.put(line)
        else:
            self.counts.lines_lost += 1

    def figures(self) -> dict[str, int]:
        """How the reader is doing. Any thread may ask."""
        return asdict(self.counts) | {
            "registered_processes": len(self.registry.processes),
            "answers_waiting": len(self._late),
            "lines_waiting": self.events.qsize(),
        }

    def _nudge(self) -> None:
        with contextlib.suppress(BlockingIOError):  # so many bytes that it is awake already
            os.write(self._woken, b"x")

    def _close(self) -> None:
        for address, endpoint in self._bound:
            leave(address, endpoint)
        self._bound = []
        self._selector.close()
        for descriptor in (self._wake, self._woken):
            os.close(descriptor)

    def _run(self) -> None:
        self._next_collection = time.monotonic() + SILENCE_SECONDS
        while not self._stopping:
            for key, _ in self._selector.select(self._patience()):
                if key.data is None:
                    self._drain_wakes()
                else:
                    self._read(key.fileobj, key.data)  # type: ignore[arg-type]
            while self._calls:
                self._calls.popleft()()
            self._retry()
            if time.monotonic() >= self._next_collection:
                self._collect()

    def _patience(self) -> float:
        now = time.monotonic()
        due = min((answer.due for answer in self._late), default=self._next_collection)
        return max(0.0, min(due, self._next_collection) - now)

    def _drain_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 65536)

    def _collect(self) -> None:
        self._next_collection = time.monotonic() + SILENCE_SECONDS
        for process in self.registry.collect(time.time()):
            self.note(f"forgot process {process.leaf} of job {process.job}: silent")

    def _read(self, endpoint: socket.socket, address: Address) -> None:
        for _ in range(BURST):
            try:
                datagram, ancillary, flags, source = endpoint.recvmsg(LARGEST_DATAGRAM, CREDENTIALS_SPACE)
            except OSError:  # nothing left, or an error of an earlier answer
                return
            who = credentials(ancillary)
            try:
                if flags & socket.MSG_TRUNC or who is None:
                    raise Malformed("cut short, or from nobody")
                message = decode(datagram)
            except Malformed:
                self.counts.malformed += 1
                continue
            name = source if isinstance(source, bytes) else (source or "").encode(errors="surrogateescape")
            try:
                self._take(message, endpoint, Sender(address.dialect, *who, name))
            except Exception as error:  # one sender's trouble must not silence the others
                self.counts.faults += 1
                self.note(f"a message of process {who[0]} was dropped: {error!r}")

    def _take(self, message: Message, endpoint: socket.socket, sender: Sender) -> None:
        if isinstance(message, Data):
            self._take_data(message, sender)
            return
        if not self._believed(message, sender):
            return
        if isinstance(message, Poll):
            self._answer_poll(message, endpoint, sender)
        elif isinstance(message, Status):
            self.registry.status(message, sender)
        else:
            self._answer_context(message, endpoint, sender)

    def _take_data(self, data: Data, sender: Sender) -> None:
        self.counts.data += 1
        # Who measures is told from the sender alone; on a socket that is open to all, others could make figures up.
        believed = sender.pid > 0 and sender.uid in self._reporters
        if not (believed and self.inbox.put(Letter(sender.pid, sender.uid, data.payload))):
            self.counts.data_refused += 1

    def _believed(self, message: Poll | Status | Context, sender: Sender) -> bool:
        """Whether it is who it says. One that is out of sight is taken at its word about its number, but the user,
        which decides who may have it traced, has to be known."""
        claimed = message.pids[0] if isinstance(message, Poll) else message.pid
        if isinstance(message, Status) and sender.uid not in self._reporters:
            # It speaks for the whole node, and on a socket that is open to all.
            self._doubt(f"a report by process {sender.pid} of user {sender.uid} was dropped: not this daemon's user")
            return False
        if sender.hidden:
            if sender.uid != self._unknown_user:
                return True
            self.registry.unanswered.strangers += isinstance(message, Poll)
            self._doubt(f"a container's process {claimed} of an unknown user was not answered")
            return False
        if self._identities.holds(sender.pid, claimed, sender.address):
            return True
        self._doubt(f"process {sender.pid} of user {sender.uid} says that it is {claimed}: not answered")
        return False

    def _doubt(self, line: str) -> None:
        self.counts.impostors += 1
        if self.counts.impostors <= MOST_DOUBTS:
            self.note(line)

    def _answer_poll(self, poll: Poll, endpoint: socket.socket, sender: Sender) -> None:
        self.counts.polls += 1
        known = len(self.registry.processes)
        config = self.registry.poll(poll, sender, time.time())
        if config is None:
            self._turned_away(poll, sender)
        else:
            self._send(Answer(endpoint, sender, config_reply(config), bool(config)))
        if len(self.registry.processes) > known:
            self.note(f"registered process {poll.pids[0]} of job {poll.job}, user {sender.uid}")
        if config:
            self.note(f"sent a configuration to process {poll.pids[0]}")

    def _turned_away(self, poll: Poll, sender: Sender) -> None:
        if self.registry.unanswered.refused <= MOST_DOUBTS:
            self.note(f"process {poll.pids[0]} of user {sender.uid} was turned away: too many are registered")

    def _answer_context(self, context: Context, endpoint: socket.socket, sender: Sender) -> None:
        count = self.registry.context(context, time.time())
        # The vendor's client never reads this answer at once, and would stay one poll behind because of it.
        if sender.dialect is Dialect.KINETO:
            self._send(Answer(endpoint, sender, context_reply(count), False))

    def _send(self, answer: Answer) -> None:
        if not answer.sender.address:
            return
        try:
            answer.endpoint.sendto(answer.datagram, socket.MSG_DONTWAIT, answer.sender.address)
            return
        except OSError as error:
            if error.errno in FULL and answer.tries < len(RETRY_SECONDS) and len(self._late) < MOST_EVENTS:
                answer.due = time.monotonic() + RETRY_SECONDS[answer.tries]
                answer.tries += 1
                self._late.append(answer)
                return
        self.counts.unsent += 1
        if answer.holds_work:
            self.registry.undelivered(answer.sender)

    def _retry(self) -> None:
        now = time.monotonic()
        for _ in range(len(self._late)):
            answer = self._late.popleft()
            if answer.due <= now:
                self._send(answer)
            else:
                self._late.append(answer)
