"""The RPC listener: many connections at once, each with one request and a few seconds to make it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from collections.abc import Sequence

from npuscope.errors import UserError
from npuscope.monitor.daemon.desk import Desk, failed
from npuscope.monitor.daemon.identity import peer_user
from npuscope.monitor.protocol import rpc

LOOPBACK = ("127.0.0.1", "::1")
READ_SECONDS = 3.0
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


class RpcServer:
    """Serves a desk on bound sockets."""

    def __init__(self, desk: Desk, listeners: Sequence[socket.socket]) -> None:
        self._desk = desk
        self._listeners = listeners
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
        try:
            # A peer that leaves, or that is too slow, costs nothing and gets nothing; nor does one at the daemon's end.
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._exchange(reader, writer)
        finally:
            self._open.pop(task, None)
            with contextlib.suppress(OSError):
                writer.close()

    def _make_room(self) -> None:
        """Let the oldest connection go when there are too many: a request takes milliseconds, so that one dawdles, and
        a crowd of its like would keep everybody out."""
        if len(self._open) >= MOST_CONNECTIONS and (oldest := next(iter(self._open))):
            del self._open[oldest]
            oldest.cancel()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(READ_SECONDS):
            header = await reader.readexactly(rpc.LENGTH.size)
        try:
            size = rpc.length(header)
        except rpc.BadFrame as error:
            reply = failed(str(error))
        else:
            async with asyncio.timeout(READ_SECONDS):
                body = await reader.readexactly(size)
            peer, here = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
            reply = await asyncio.to_thread(self._answer, body, peer[:2], here[:2])
        writer.write(rpc.frame(reply))
        async with asyncio.timeout(READ_SECONDS):
            await writer.drain()

    def _answer(self, body: bytes, peer: tuple[str, int], here: tuple[str, int]) -> str:
        user = peer_user(peer, here)
        if user is None and is_loopback(peer[0]):
            return failed("whose request this is cannot be found out")
        try:
            return self._desk.answer(body, user)
        except Exception as error:  # the next request deserves an answer too
            return failed(f"{type(error).__name__}: {error}")


def is_loopback(host: str) -> bool:
    """Whether an address is this host's own loopback."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
