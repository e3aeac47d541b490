"""Daemons of a few lines: one that answers what it is told to and remembers what it was asked, and a thousand that
answer, hang, break off or talk nonsense."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Reply = str | bytes | None
"""Text in a frame, raw bytes, or nothing: the connection is closed."""


def frame(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<i", len(data)) + data


@dataclass
class SmallDaemon:
    """Answers by the name of the function; keeps the text of every request, "" for a connection without one."""

    replies: Mapping[str, Reply | Callable[[dict[str, Any]], Reply]]
    requests: list[str] = field(default_factory=list)
    port: int = 0
    _last: tuple[str, int] | None = None

    @contextlib.contextmanager
    def serving(self) -> Iterator[SmallDaemon]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            thread = threading.Thread(target=self._serve, args=(listener,), daemon=True)
            thread.start()
            yield self
            with socket.socket() as last:  # all that came before it have been served when it is
                last.bind(("127.0.0.1", 0))
                self._last = last.getsockname()
                last.connect(("127.0.0.1", self.port))
                thread.join(20)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            connection, peer = listener.accept()
            with connection:
                if peer == self._last:
                    return
                connection.settimeout(10)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        header = connection.recv(4, socket.MSG_WAITALL)
        text = ""
        if len(header) == 4:
            text = connection.recv(struct.unpack("<i", header)[0], socket.MSG_WAITALL).decode()
        self.requests.append(text)
        if not text:
            return
        request = json.loads(text)
        reply = self.replies.get(request["fn"])
        if callable(reply):
            reply = reply(request)
        if reply is not None:
            connection.sendall(frame(reply) if isinstance(reply, str) else reply)


KINDS = ("good", "refusing", "hanging", "dripping", "closing", "nonsense")


@dataclass
class Crowd:
    """Many daemons in one thread, each on a listening socket of its own; `kinds` says how each behaves."""

    kinds: dict[tuple[str, int], str] = field(default_factory=dict)

    @contextlib.contextmanager
    def serving(self, wanted: Mapping[str, int], reply: str) -> Iterator[Crowd]:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(wanted, reply), loop).result(60)
            yield self
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    async def _start(self, wanted: Mapping[str, int], reply: str) -> None:
        kinds = [kind for kind, count in wanted.items() for _ in range(count)]
        for number, kind in enumerate(kinds):
            host = f"127.0.{1 + number // 250}.{1 + number % 250}"
            listener = socket.create_server((host, 0))
            self.kinds[host, listener.getsockname()[1]] = kind
            if kind == "refusing":
                listener.close()
                continue
            await asyncio.start_server(self._behaviour(kind, frame(reply)), sock=listener)

    def _behaviour(self, kind: str, reply: bytes) -> Callable[..., Any]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await reader.readexactly(4)
                if kind == "good":
                    writer.write(reply)
                elif kind == "closing":
                    writer.write(reply[: len(reply) // 2])
                elif kind == "nonsense":
                    writer.write(struct.pack("<i", -5) + b"nonsense")
                elif kind == "dripping":  # something comes all the time, and never all of it
                    writer.write(struct.pack("<i", 10000))
                while kind in ("hanging", "dripping") and not reader.at_eof():
                    await asyncio.sleep(0.2)
                    if kind == "dripping":
                        writer.write(b" ")
                        await writer.drain()
                await writer.drain()
            writer.close()

        return connected
