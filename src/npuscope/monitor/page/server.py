"""The HTTP server of the page: few connections, each with one request and a few seconds to make it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from npuscope.errors import UserError
from npuscope.monitor.daemon.connections import is_loopback, peer_user
from npuscope.monitor.page.http import LARGEST_HEAD, Refusal, Request, Response, encode, parse, refusal, require_known

READ_SECONDS = 5.0
ANSWER_SECONDS = 10.0
WRITE_SECONDS = 10.0
LINGER_SECONDS = 1.0
MOST_CONNECTIONS = 64
WORKERS = 4

Answer = Callable[[Request, int | None], Response]
"""What answers a request of a user; None stands for one who is not known or comes from another host."""


def listen(host: str, port: int) -> socket.socket:
    """A socket for the page; port 0 lets the system choose. Raises UserError, in one line."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UserError(f"the page cannot listen on {host}: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(MOST_CONNECTIONS)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"{host}:{port}, where the page is to be, is in use; choose another --http") from None
        raise UserError(f"the page cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener


def url(listener: socket.socket) -> str:
    """What to type into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class PageServer:
    """Serves answers on a bound socket."""

    def __init__(self, answer: Answer, listener: socket.socket) -> None:
        self._answer = answer
        self._listener = listener
        self._open = 0
        # Threads of its own: however long viewers keep them, `dyno` is answered by others.
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")
        local = is_loopback(listener.getsockname()[0])
        self._names = frozenset() if local else frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})

    async def serve(self, stop: asyncio.Event) -> None:
        """Answer until told to stop."""
        server = await asyncio.start_server(self._connected, sock=self._listener, limit=LARGEST_HEAD)
        await stop.wait()
        server.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            # A browser that leaves, or that is too slow, costs nothing and gets nothing.
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                if self._open > MOST_CONNECTIONS:
                    await self._send(reader, writer, encode(refusal(503, "too many viewers at once; try again")))
                else:
                    await self._exchange(reader, writer)
        finally:
            self._open -= 1
            writer.transport.abort()  # what could be sent has been

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with_body = True
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            with_body = not head.startswith(b"HEAD ")
            response = await self._respond(head, writer)
        except asyncio.LimitOverrunError:
            response = refusal(431, "the headers of the request are too long")
        except TimeoutError:
            response = refusal(408, "no whole request came in time")
        await self._send(reader, writer, encode(response, with_body=with_body))

    async def _respond(self, head: bytes, writer: asyncio.StreamWriter) -> Response:
        peer, here = writer.get_extra_info("peername")[:2], writer.get_extra_info("sockname")[:2]
        try:
            request = parse(head)
            require_known(request.host, self._names | {here[0]})
        except Refusal as refused:
            return refused.response
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._workers, self._answered, request, peer, here)
        except TimeoutError:
            return refusal(503, "the daemon does not answer its own page")

    def _answered(self, request: Request, peer: tuple[str, int], here: tuple[str, int]) -> Response:
        viewer = peer_user(peer, here) if is_loopback(peer[0]) else None
        try:
            return self._answer(request, viewer)
        except TimeoutError:
            return refusal(503, "the thread that answers the training processes does not answer")
        except Exception as error:  # the next request deserves an answer too
            return refusal(500, f"{type(error).__name__}: {error}")

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> None:
        writer.transport.set_write_buffer_limits(0)  # "drained" means sent, all of it
        writer.write(message)
        async with asyncio.timeout(WRITE_SECONDS):
            await writer.drain()
            writer.write_eof()
            # Whatever else the peer has sent must be read, or the system would take the response back.
            async with asyncio.timeout(LINGER_SECONDS):
                while await reader.read(LARGEST_HEAD):
                    pass
