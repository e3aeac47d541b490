"""Asking a daemon: one connection, one request, one reply."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

from npuscope.errors import UserError
from npuscope.monitor.certificates.reasons import why
from npuscope.monitor.protocol import rpc

EXIT_NO_SERVER = 101
"""What the stock command exits with; scripts may look for it."""
SECONDS = 10.0
NEEDS_CERTIFICATES = "the daemon speaks TLS only (name your certificates with --certs-dir)"


class NoReply(UserError):
    """There is a daemon, and it does not answer this."""


def ask(
    host: str, port: int, request: str | Callable[[], str], seconds: float = SECONDS,
    certificates: ssl.SSLContext | None = None,
) -> str:  # fmt: skip
    """The daemon's reply to a request, which may be made when the connection is there already; over TLS where there
    are certificates. Raises UserError, in one line, when there is no daemon, or it does not answer, or either side
    does not accept the other."""
    where = f"{host}:{port}"
    try:
        connection = socket.create_connection((host, port), timeout=seconds)
    except (OSError, UnicodeError) as error:
        reason = "this is not a host's name" if isinstance(error, UnicodeError) else error.strerror or str(error)
        raise _no_connection(where, f"{reason} (start one: npuscope monitor daemon)") from None
    try:
        with certificates.wrap_socket(connection, server_hostname=host) if certificates else connection as stream:
            stream.sendall(rpc.frame(request if isinstance(request, str) else request()))
            size = rpc.length(_exactly(stream, rpc.LENGTH.size), rpc.LARGEST_REPLY)
            reply = _exactly(stream, size).decode()
    except ssl.SSLError as error:
        raise _no_connection(where, f"{why(error, 'the daemon')}{_hint(error)}") from None
    except (OSError, ValueError) as error:
        raise NoReply(
            f"the daemon at {where} gave no proper reply: {error or type(error).__name__}",
            exit_code=EXIT_NO_SERVER,
        ) from None
    finally:
        connection.close()
    if reply == rpc.NEEDS_TLS and not certificates:
        raise _no_connection(where, NEEDS_CERTIFICATES)
    return reply


def _no_connection(where: str, reason: str) -> UserError:
    return UserError(f"Couldn't connect to the server at {where}: {reason}", exit_code=EXIT_NO_SERVER)


def _hint(error: ssl.SSLError) -> str:
    told = isinstance(error, ssl.SSLCertVerificationError) or "_ALERT_" in (error.reason or "")
    return "" if told else " (does it run with --certs-dir?)"


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise ConnectionError("the connection was closed")
        received += piece
    return bytes(received)
