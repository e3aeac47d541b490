"""Who is at the other end of a TCP connection. The kernel is asked about the one connection, which is as quick with
many thousands of them as with one."""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct

from npuscope.monitor.proc import PROC

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
NO_COOKIE = 0xFFFFFFFF
ALL_STATES = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")
QUESTION = struct.Struct("=BBBxI")
ENDPOINTS = struct.Struct("!HH16s16s")
REST = struct.Struct("=III")
ANSWER_HEAD = struct.Struct("=BBBB")
FIGURES = struct.Struct("=IIIII")
"""Of an answer, after its endpoints and REST: expiry, two queues, the user, the inode."""


class Unknown(OSError):
    """The kernel does not say."""


def peer_user(peer: tuple[str, int], here: tuple[str, int]) -> int | None:
    """The user at the other end of a TCP connection on this host; None when it comes from elsewhere."""
    try:
        return owner(peer, here)
    except Unknown:
        return peer_in_table(peer, here)


def owner(local: tuple[str, int], remote: tuple[str, int]) -> int | None:
    """The user whose socket has these ends; None when no process of this host has it open.

    Raises Unknown where the kernel does not answer such questions.
    """
    family, ends = _ends(local, remote)
    message = QUESTION.pack(family, socket.IPPROTO_TCP, 0, ALL_STATES) + ends + REST.pack(0, NO_COOKIE, NO_COOKIE)
    header = HEADER.pack(HEADER.size + len(message), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(1.0)
            kernel.send(header + message)
            answer = kernel.recv(4096)
    except (OSError, AttributeError) as error:
        raise Unknown(str(error)) from None
    return _read(answer, ends)


def _read(answer: bytes, ends: bytes) -> int | None:
    kind = HEADER.unpack_from(answer)[1]
    if kind != SOCK_DIAG_BY_FAMILY:
        number = -struct.unpack_from("=i", answer, HEADER.size)[0]
        if number == errno.ENOENT:  # there is no such connection
            return None
        raise Unknown(f"error {number}")
    at = HEADER.size + ANSWER_HEAD.size
    user, inode = FIGURES.unpack_from(answer, at + len(ends) + REST.size)[3:]
    # Without the connection the kernel may name a socket that listens; one that was closed has no inode, and user 0.
    if ENDPOINTS.unpack(answer[at : at + len(ends)])[:2] != ENDPOINTS.unpack(ends)[:2] or not inode:
        return None
    return int(user)


def peer_in_table(peer: tuple[str, int], here: tuple[str, int]) -> int | None:
    """The same from a table of all connections, where the kernel answers no questions."""
    pairs = [f" {local} {remote} ".encode() for local in _endpoints(*peer) for remote in _endpoints(*here)]
    for table in ("tcp", "tcp6"):
        text = _connections(table)
        for pair in pairs:
            if (user := _owner_in(text, pair)) is not None:
                return user
    return None


def _connections(table: str) -> bytes:
    try:
        return (PROC / "self" / "net" / table).read_bytes()
    except OSError:
        return b""


def _owner_in(text: bytes, pair: bytes) -> int | None:
    """Whose connection it is. The text is searched and not split: it may have many thousands of lines, and splitting
    them would keep the interpreter from answering polls."""
    at = text.find(pair)
    while at >= 0:
        words = text[at : text.find(b"\n", at)].split()
        # A socket that its process has closed belongs to no user, and would read as root's.
        if int(words[8]):
            return int(words[6])
        at = text.find(pair, at + 1)
    return None


def _endpoints(host: str, port: int) -> set[str]:
    """An address as the kernel's tables spell it: each word in the machine's byte order, IPv4 also inside IPv6."""
    packed = _address(host).packed
    spelled = {packed} if len(packed) == 16 else {packed, b"\0" * 10 + b"\xff\xff" + packed}
    return {f"{_words(one)}:{port:04X}" for one in spelled}


def _words(packed: bytes) -> str:
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def _ends(local: tuple[str, int], remote: tuple[str, int]) -> tuple[int, bytes]:
    """The address family and both ends. IPv4 inside IPv6 is asked for as it is connected: as IPv4."""
    here, there = _address(local[0]), _address(remote[0])
    family = socket.AF_INET if here.version == there.version == 4 else socket.AF_INET6
    return family, ENDPOINTS.pack(local[1], remote[1], here.packed, there.packed)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_loopback(host: str) -> bool:
    """Whether an address is this host's own loopback. Raises ValueError for what is no address."""
    return _address(host).is_loopback
