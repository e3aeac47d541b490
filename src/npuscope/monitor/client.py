"""Asking a daemon: one connection, one request, one reply."""

from __future__ import annotations

import socket
from collections.abc import Callable

from npuscope.errors import UserError
from npuscope.monitor.protocol import rpc

EXIT_NO_SERVER = 101
"""What the stock command exits with; scripts may look for it."""
SECONDS = 10.0


class NoReply(UserError):
    """There is a daemon, and it does not answer this."""


def ask(host: str, port: int, request: str | Callable[[], str], seconds: float = SECONDS) -> str:
    """The daemon's reply to a request, which may be made when the connection is there already.

    Raises UserError, in one line, when there is no daemon or it does not answer.
    """
    try:
        connection = socket.create_connection((host, port), timeout=seconds)
    except (OSError, UnicodeError) as error:
        reason = "this is not a host's name" if isinstance(error, UnicodeError) else error.strerror or str(error)
        raise UserError(
            f"Couldn't connect to the server at {host}:{port}: {reason} (start one: npuscope monitor daemon)",
            exit_code=EXIT_NO_SERVER,
        ) from None
    try:
        with connection:
            connection.sendall(rpc.frame(request if isinstance(request, str) else request()))
            size = rpc.length(_exactly(connection, rpc.LENGTH.size), rpc.LARGEST_REPLY)
            return _exactly(connection, size).decode()
    except (OSError, ValueError) as error:
        raise NoReply(
            f"the daemon at {host}:{port} gave no proper reply: {error or type(error).__name__}",
            exit_code=EXIT_NO_SERVER,
        ) from None


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise ConnectionError("the connection was closed")
        received += piece
    return bytes(received)
