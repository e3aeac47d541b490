"""The RPC listener: many connections at once, each with one request and a few seconds to make it.

Who asks: over this host's own network, the user whose socket the kernel says it is, with TLS or without; from
elsewhere, the user as whom the daemon runs. With TLS, whoever asks from elsewhere has a certificate of the authority
that the daemon was given, which is to give certificates to nobody but those who may act as that user. Without, it may
be anybody who reaches the port: the loopback's alone unless the daemon is told otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable, Sequence

from npuscope.errors import UserError
from npuscope.monitor.certificates.daemon_side import DaemonCertificates
from npuscope.monitor.certificates.reasons import why
from npuscope.monitor.daemon.connections import is_loopback, peer_user
from npuscope.monitor.daemon.desk import Desk
from npuscope.monitor.daemon.replies import failed
from npuscope.monitor.daemon.streams import NotTls, Silent, Stream, TlsStream
from npuscope.monitor.protocol import rpc

LOOPBACK = ("127.0.0.1", "::1")
EVERYWHERE = ("::",)
"""All addresses, those of IPv4 too."""
READ_SECONDS = 3.0
HANDSHAKE_SECONDS = 5.0
LINGER_SECONDS = 1.0
MOST_CONNECTIONS = 256


def bind(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Sockets that listen on the port of every host, the loopback of IPv6 only where there is one.

    Port 0 lets the system choose. Raises UserError, in one line, when a port cannot be had.
    """
    bound: list[socket.socket] = []
    try:
        for host in hosts:
            found = _listen(host, bound[0].getsockname()[1] if bound else port, optional=bool(bound) and host == "::1")
            bound += [found] if found else []
    except BaseException:
        for listener in bound:
            listener.close()
        raise
    return bound


def _listen(host: str, port: int, *, optional: bool) -> socket.socket | None:
    if (host,) == EVERYWHERE and not _has_ipv6():
        host = "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener: socket.socket | None = None
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        listener.bind((host, port))
        listener.listen(128)
        return listener
    except OSError as error:
        if listener:
            listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} of {host} is in use: another daemon runs there, or choose another --port"
            ) from None
        if optional:
            return None
        raise UserError(f"cannot listen on port {port} of {host}: {error.strerror or error}") from None


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as attempt:
        attempt.bind(("::", 0))
        return True
    return False


class RpcServer:
    """Serves a desk on bound sockets, with TLS where there are certificates."""

    def __init__(
        self,
        desk: Desk,
        listeners: Sequence[socket.socket],
        certificates: DaemonCertificates | None = None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._desk = desk
        self._listeners = listeners
        self._certificates = certificates
        self._log = log
        self._open: dict[asyncio.Task[None] | None, None] = {}
        """Connections, by the tasks that serve them, the oldest first."""

    async def serve(self, stop: asyncio.Event) -> None:
        """Answer until told to stop."""
        servers = [await asyncio.start_server(self._connected, sock=listener) for listener in self._listeners]
        await stop.wait()
        for server in servers:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._make_room()
        self._open[task] = None
        stream = Stream(reader, writer)
        try:
            # A peer that leaves, or that is too slow, costs nothing and gets nothing; nor does one at the daemon's end.
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
                if self._certificates:
                    stream = TlsStream(self._certificates.context(self._log), reader, writer)
                    await self._shake_hands(stream)
                await self._exchange(stream)
        finally:
            self._open.pop(task, None)
            with contextlib.suppress(OSError):
                stream.close()

    def _make_room(self) -> None:
        """Let the oldest connection go when there are too many: a request takes milliseconds, so that one dawdles, and
        a crowd of its like would keep everybody out."""
        if len(self._open) >= MOST_CONNECTIONS and (oldest := next(iter(self._open))):
            del self._open[oldest]
            oldest.cancel()

    async def _shake_hands(self, stream: Stream) -> None:
        """Raises OSError or TimeoutError, after a line in the log, when that fails."""
        last_words = b""
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await stream.begin()
            return
        except Silent:
            raise
        except NotTls:
            reason, last_words = "it does not speak TLS", rpc.frame(rpc.NEEDS_TLS)
        except TimeoutError:
            reason = f"the TLS handshake took more than {HANDSHAKE_SECONDS:g} s"
        except ssl.SSLError as error:
            reason = why(error, "the peer")
        except OSError as error:
            reason = error.strerror or str(error)
        self._log(f"turned {stream.peer[0].removeprefix('::ffff:')} away: {reason}")
        await stream.tell_plainly(last_words, LINGER_SECONDS)
        raise ConnectionAbortedError

    async def _exchange(self, stream: Stream) -> None:
        async with asyncio.timeout(READ_SECONDS):
            header = await stream.receive(rpc.LENGTH.size)
        try:
            size = rpc.length(header)
        except rpc.BadFrame as error:
            reply = failed(str(error))
        else:
            async with asyncio.timeout(READ_SECONDS):
                body = await stream.receive(size)
            reply = await asyncio.to_thread(self._answer, body, stream.peer, stream.here)
        async with asyncio.timeout(READ_SECONDS):
            await stream.send(rpc.frame(reply))

    def _answer(self, body: bytes, peer: tuple[str, int], here: tuple[str, int]) -> str:
        user = peer_user(peer, here)
        if user is None and is_loopback(peer[0]):
            return failed("whose request this is cannot be found out")
        try:
            return self._desk.answer(body, user)
        except Exception as error:  # the next request deserves an answer too
            return failed(f"{type(error).__name__}: {error}")
