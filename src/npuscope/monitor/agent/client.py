"""The agent's line to a daemon, ours or the vendor's: datagrams on a socket without a file.

One thread asks, listens and reports; measurements may be sent from any thread. Nothing raises: a daemon that is not
there is the usual case.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import threading
import time
import uuid
from dataclasses import dataclass

from npuscope.monitor.agent.family import family
from npuscope.monitor.daemon.identity import CREDENTIALS_SPACE, ROOT, credentials
from npuscope.monitor.protocol.fabric import (
    HEADER,
    Context,
    Status,
    Types,
    encode,
    encode_context,
    encode_poll,
    encode_status,
)
from npuscope.monitor.protocol.home import control_socket, data_socket, home

NAME = "dynoconfigclient"
LARGEST_DATAGRAM = 1 << 18
"""More than the kernel lets a datagram have, as it comes set up."""
RETRIED = frozenset({errno.EAGAIN, errno.ECONNREFUSED, errno.ENOBUFS})
"""A daemon that is slow, or that is just coming back. Any other error ends the attempt."""
REGISTRATION = 4
"""Bytes of a payload that is the answer to a registration, whatever the message is called."""
PERMITTED_SILENCE = 50.0
"""A daemon forgets who has been silent for a minute; after this long the client introduces itself anew."""
LONGEST_WAIT = 1.0
"""Between two tries; otherwise a daemon that has come back would wait for five seconds."""
PAUSE_SECONDS = 1.0
"""For so long measurements are tried but once, after one could not be sent for all tries."""


@dataclass(frozen=True)
class Patience:
    """How often something is sent again, and after how long; each wait is twice the one before."""

    first: float
    tries: int


CONTROL = Patience(0.010, 10)
DATA = Patience(0.001, 5)
AT_ONCE = Patience(0.0, 0)


class Client:
    """A process's end of the line."""

    def __init__(self, folder: str | None = None, device: int = -1, job: int = 0) -> None:
        """`folder` holds the daemon's sockets."""
        folder = folder or home()
        self.control, self.data = control_socket(folder), data_socket(folder)
        self.job = job
        self.pid = os.getpid()
        self._device = device
        self._believed = (ROOT, os.getuid())
        self._closing = threading.Event()
        self._known: tuple[int, int] | None = None
        self._heard = 0.0
        self._sparing = 0.0
        self._socket: socket.socket | None = None
        self._alarm: int | None = None
        self._listening = select.poll()
        self._open()

    def _open(self) -> socket.socket | None:
        """The socket, made now where it is missing; None while the process may have no more descriptors."""
        if self._socket is not None or self._closing.is_set():
            return self._socket
        line: socket.socket | None = None
        try:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            # The NUL at the end belongs to the name.
            line.bind(f"\0{NAME}{uuid.uuid4()}\0".encode())
            alarm = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except OSError:
            if line:
                line.close()
            return None
        for descriptor in (line.fileno(), alarm):
            self._listening.register(descriptor, select.POLLIN)
        self._socket, self._alarm = line, alarm
        return line

    @property
    def acquainted(self) -> bool:
        """Whether the daemon that listens now knows this process and where it stands."""
        fresh = time.monotonic() - self._heard < PERMITTED_SILENCE
        return fresh and self._known is not None and self._known == self._daemon()

    @property
    def heard(self) -> float:
        """When the daemon last said something, by the monotonic clock."""
        return self._heard

    def _daemon(self) -> tuple[int, int] | None:
        """Tells one daemon from the next: each binds a file of its own."""
        try:
            found = os.stat(self.control)
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns

    def introduce(self, *statuses: Status) -> bool:
        """Register, and say where everything stands. False when no daemon listens."""
        known = self._daemon()
        context = encode_context(Context(self._device, self.pid, self.job))
        done = all(self._send(datagram) for datagram in (context, *map(encode_status, statuses)))
        self._known = known if done else None
        self._heard = time.monotonic() if done else self._heard
        return done

    def ask(self) -> bool:
        """Ask for work; `receive` has the answer. False when no daemon listens."""
        # The family may have changed: a parent that ends leaves its children to another.
        return self._send(encode_poll(Types.EVENTS | Types.ACTIVITIES, self.job, family(self.pid)))

    def tell(self, status: Status) -> bool:
        """Report a status."""
        done = self._send(encode_status(status))
        if not done:
            self._known = None  # whoever listens next is told with the introduction
        return done

    def receive(self, seconds: float) -> list[str]:
        """Wait for answers, for so long or until `wake`; returns the configurations among them.

        However late an answer comes, it is taken with the next call: this client never reads the answer to an earlier
        question for the one to the last.
        """
        line = self._open()
        if line is None:
            self._closing.wait(max(0.0, seconds))
            return []
        with contextlib.suppress(OSError):
            for descriptor, _ in self._listening.poll(max(0.0, seconds) * 1000):
                if descriptor == self._alarm:
                    os.eventfd_read(descriptor)
        found = []
        while (payload := self._read(line)) is not None:
            if payload and len(payload) != REGISTRATION:
                found.append(payload.decode(errors="replace"))
        return found

    def _read(self, line: socket.socket) -> bytes | None:
        """The payload of the next answer, empty for what is none; None when nothing is left."""
        try:
            datagram, ancillary, flags, _ = line.recvmsg(LARGEST_DATAGRAM, CREDENTIALS_SPACE)
        except OSError:
            return None
        who = credentials(ancillary)
        # Anybody can find the socket's name out; only the daemon's user may have this process write files.
        if who is None or who[1] not in self._believed or flags & socket.MSG_TRUNC or len(datagram) < HEADER.size:
            return b""
        size, name = HEADER.unpack_from(datagram)
        if size != len(datagram) - HEADER.size:
            return b""
        self._heard = time.monotonic()
        return datagram[HEADER.size :] if name.startswith(b"req") else b""

    def measure(self, payload: bytes) -> bool:
        """Send a measurement, a JSON object; False when it is lost. Any thread may call it."""
        sparing = time.monotonic() < self._sparing
        done = self._send(encode("data", payload), self.data, AT_ONCE if sparing else DATA)
        if not done and not sparing:
            self._sparing = time.monotonic() + PAUSE_SECONDS
        return done

    def wake(self) -> None:
        """Have `receive` return. Any thread may call it."""
        with contextlib.suppress(OSError):
            if self._alarm is not None:
                os.eventfd_write(self._alarm, 1)

    def hang_up(self) -> None:
        """Nothing is waited for any more; what is sent from now on is tried once."""
        self._closing.set()
        self.wake()

    def close(self) -> None:
        """Close the descriptors; only once nobody uses them any more."""
        line, alarm, self._socket, self._alarm = self._socket, self._alarm, None, None
        with contextlib.suppress(OSError):
            if line is not None:
                line.close()
            if alarm is not None:
                os.close(alarm)

    def _send(self, datagram: bytes, path: str | None = None, patience: Patience = CONTROL) -> bool:
        wait = patience.first
        line = self._open()
        if line is None:
            return False
        for attempt in range(patience.tries + 1):
            try:
                line.sendto(datagram, socket.MSG_DONTWAIT, path or self.control)
                return True
            except OSError as error:
                if error.errno not in RETRIED or attempt == patience.tries or self._closing.is_set():
                    return False
            if self._closing.wait(wait):
                continue  # one last try
            wait = min(2 * wait, LONGEST_WAIT)
        return False
