"""What a request comes in by and its reply goes out by: a TCP connection as it is, or TLS over it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
PIECE = 64 * 1024
TLS_HANDSHAKE = 0x16
"""First byte of whoever speaks TLS."""


class NotTls(ConnectionError):
    """The peer has something to say, but does not say it in TLS."""


class Silent(ConnectionError):
    """The peer has left without a word."""


class Stream:
    """A connection as it is."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def peer(self) -> tuple[str, int]:
        """Host and port of the other end."""
        return self._about("peername")

    @property
    def here(self) -> tuple[str, int]:
        """Host and port of this end."""
        return self._about("sockname")

    def _about(self, name: str) -> tuple[str, int]:
        found: Any = self._writer.get_extra_info(name)
        if not found:
            raise ConnectionResetError  # it left before it could be looked at
        return found[0], found[1]

    async def begin(self) -> None:
        """What both sides do before the first request."""

    async def receive(self, count: int) -> bytes:
        """So many bytes. Raises IncompleteReadError when there will not be as many."""
        return await self._reader.readexactly(count)

    async def send(self, data: bytes) -> None:
        """Hand bytes to the peer."""
        self._writer.write(data)
        await self._writer.drain()

    async def tell_plainly(self, data: bytes, seconds: float) -> None:
        """Send bytes outside of any TLS, and listen for a while: a peer that is shut out while it still speaks may not
        get to read why."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                self._writer.write(data)
                self._writer.write_eof()
                while await self._reader.read(PIECE):
                    pass

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


class TlsStream(Stream):
    """TLS over a connection. Unlike asyncio's own, it sends the peer an alert that says why a handshake has failed."""

    def __init__(self, context: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def begin(self) -> None:
        """Shake hands. Raises SSLError, or NotTls, or Silent."""
        first = await self._reader.read(PIECE)
        if not first:
            raise Silent
        if first[0] != TLS_HANDSHAKE:
            raise NotTls
        self._incoming.write(first)
        await self._carried(self._tls.do_handshake)

    async def receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = await self._carried(partial(self._tls.read, count - len(received)))
            if not piece:
                raise asyncio.IncompleteReadError(bytes(received), count)
            received += piece
        return bytes(received)

    async def send(self, data: bytes) -> None:
        await self._carried(partial(self._tls.write, data))
        await self._writer.drain()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._tls.unwrap()  # says goodbye; nobody waits for the answer
        with contextlib.suppress(OSError, RuntimeError):
            self._flush()
        super().close()

    async def _carried(self, step: Callable[[], T]) -> T:
        """Do a step of TLS, and carry bytes to and fro until it is done."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                pass
            finally:
                self._flush()  # an error has its alert
            await self._writer.drain()
            if piece := await self._reader.read(PIECE):
                self._incoming.write(piece)
            else:
                self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._writer.write(self._outgoing.read())
