"""Who has sent a datagram: the kernel's word for it, not the sender's."""

from __future__ import annotations

import os
import socket
import struct

from npuscope.monitor.proc import PROC, own_number

CREDENTIALS = struct.Struct("=iII")
CREDENTIALS_SPACE = socket.CMSG_SPACE(CREDENTIALS.size)
ROOT = 0


def credentials(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int] | None:
    """(pid, uid) of a datagram's sender; None when the kernel does not say."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= CREDENTIALS.size:
            pid, uid, _ = CREDENTIALS.unpack_from(data)
            return pid, uid
    return None


def own_user() -> int:
    """The user as whom the daemon runs."""
    return os.getuid()


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
