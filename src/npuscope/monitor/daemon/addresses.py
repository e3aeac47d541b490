"""The sockets on which clients look for the daemon: which there are, how they are bound, how they are left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npuscope.errors import UserError
from npuscope.monitor.protocol.fabric import ABSTRACT_NAME, FILE_NAME, Dialect
from npuscope.monitor.protocol.home import control_socket, data_socket, home

LONGEST_PATH = 106
RECEIVE_BUFFER = 4 * 1024 * 1024
KINDS = ("abstract", "directory", "home")
DIRECTORY = "KINETO_IPC_SOCKET_DIR"
"""The variable that names the folder of the second kind, for clients as well."""


@dataclass(frozen=True)
class Address:
    """A place to listen. Everybody may write to a file of mode 0666, only the daemon's own user to one of 0600."""

    name: bytes
    dialect: Dialect
    mode: int | None = None

    def __str__(self) -> str:
        name = self.name.strip(b"\0").decode(errors="replace")
        return name if self.mode is not None else f"@{name}"


def addresses(kinds: Sequence[str], environment: Mapping[str, str]) -> list[Address]:
    """Where to listen. A directory is taken as it is written: clients compare the text."""
    found = []
    directory = environment.get(DIRECTORY, "")
    if "abstract" in kinds:
        found.append(Address(ABSTRACT_NAME, Dialect.KINETO))
    if "directory" in kinds and directory:
        found.append(Address(f"{directory}/{FILE_NAME}".encode(), Dialect.KINETO, 0o666))
    if "home" in kinds:
        names = [name(home(environment)) for name in (control_socket, data_socket)]
        found += [Address(name.encode(), Dialect.MSMONITOR, 0o600) for name in names]
    return found


def listen(address: Address) -> socket.socket:
    """A socket bound to the address, which tells who sends. Raises UserError, in one line, when that cannot be."""
    endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        if address.mode is not None:
            _make_way(address)
        _bind(endpoint, address)
    except OSError as error:
        endpoint.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"the IPC socket {address} is in use: another daemon runs") from None
        raise UserError(f"cannot listen on the IPC socket {address}: {error.strerror or error}") from None
    except UserError:
        endpoint.close()
        raise
    return endpoint


def _bind(endpoint: socket.socket, address: Address) -> None:
    if address.mode is None:
        endpoint.bind(address.name)
        return
    # The file is born closed to others, and opened afterwards where everybody may write.
    mask = os.umask(0o177)
    try:
        endpoint.bind(address.name)
    finally:
        os.umask(mask)
    os.chmod(address.name, address.mode)


def _make_way(address: Address) -> None:
    """Remove a socket that a dead daemon of the same user left; refuse anything else that is in the way."""
    if len(address.name) > LONGEST_PATH:
        raise UserError(f"the IPC socket {address} has a name longer than {LONGEST_PATH} bytes")
    try:
        found = os.lstat(address.name)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise UserError(f"{address} is in the way and is not a socket; remove it")
    if found.st_uid != os.getuid():
        raise UserError(f"the socket {address} is in the way and belongs to another user")
    if alive(address.name):
        raise UserError(f"the IPC socket {address} is in use: another daemon runs")
    os.unlink(address.name)


def alive(name: bytes) -> bool:
    """Whether somebody listens on a socket file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(name)
        except OSError as error:
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True


def leave(address: Address, endpoint: socket.socket) -> None:
    """Close a socket and take its file away."""
    endpoint.close()
    # Another daemon may have put its own socket there by now.
    if address.mode is not None and os.path.exists(address.name) and not alive(address.name):
        with contextlib.suppress(OSError):  # the folder may have been closed to us meanwhile
            os.unlink(address.name)
