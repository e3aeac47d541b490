"""Who is at the other end: the kernel's word for it, not the sender's."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from npuscope.monitor.daemon.connections import Unknown, owner

CREDENTIALS = struct.Struct("=iII")
CREDENTIALS_SPACE = socket.CMSG_SPACE(CREDENTIALS.size)
PROC = Path("/proc")
ROOT = 0


def credentials(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int] | None:
    """(pid, uid) of a datagram's sender; None when the kernel does not say."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= CREDENTIALS.size:
            pid, uid, _ = CREDENTIALS.unpack_from(data)
            return pid, uid
    return None


def own_number(pid: int) -> int | None:
    """The number by which a process knows itself, in the innermost of its pid namespaces."""
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None


def overflow_user() -> int:
    """The user that the kernel names when it cannot name the real one."""
    try:
        return int((PROC / "sys" / "kernel" / "overflowuid").read_text())
    except (OSError, ValueError):
        return 65534


class Identities:
    """Which sender may call itself what: itself. What was once looked up is remembered, for polls are answered fast."""

    def __init__(self, most: int = 65536) -> None:
        self._known: set[tuple[int, int, bytes]] = set()
        self._most = most

    def holds(self, sender: int, claimed: int, address: bytes) -> bool:
        """Whether the process `sender` is the one it claims to be. One that is out of sight (0) is not believed."""
        if sender <= 0:
            return False
        if sender == claimed or (sender, claimed, address) in self._known:
            return True
        if own_number(sender) != claimed:
            return False
        if len(self._known) >= self._most:
            self._known.clear()
        self._known.add((sender, claimed, address))
        return True


def command(pid: int) -> str:
    """The command line of a process, shortened; "" when it is gone."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)[:200]


def rank(pid: int) -> int | None:
    """The rank of a process in its job, from the environment it was started with."""
    try:
        environment = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    for entry in environment.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == b"RANK" and value.isdigit():
            return int(value)
    return None


def peer_user(peer: tuple[str, int], here: tuple[str, int]) -> int | None:
    """The user at the other end of a TCP connection on this host; None when it comes from elsewhere."""
    try:
        return owner(peer, here)
    except Unknown:
        return peer_in_table(peer, here)


def peer_in_table(peer: tuple[str, int], here: tuple[str, int]) -> int | None:
    """The same from a table of all connections, where the kernel answers no questions."""
    pairs = [f" {local} {remote} ".encode() for local in _endpoints(*peer) for remote in _endpoints(*here)]
    for table in ("tcp", "tcp6"):
        text = _connections(table)
        for pair in pairs:
            if (user := _owner(text, pair)) is not None:
                return user
    return None


def _connections(table: str) -> bytes:
    try:
        return (PROC / "self" / "net" / table).read_bytes()
    except OSError:
        return b""


def _owner(text: bytes, pair: bytes) -> int | None:
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
    host = host.partition("%")[0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    mapped = b"\0" * 10 + b"\xff\xff"
    if len(packed) == 16 and packed.startswith(mapped):
        packed = packed[12:]
    spelled = {packed} if len(packed) == 16 else {packed, mapped + packed}
    return {f"{_words(one)}:{port:04X}" for one in spelled}


def _words(packed: bytes) -> str:
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def gone(pid: int) -> bool:
    """Whether no process has this number. What is out of sight is not known to be gone."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)  # /proc may be closed to us
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def own_user() -> int:
    """The user as whom the daemon runs."""
    return os.getuid()
