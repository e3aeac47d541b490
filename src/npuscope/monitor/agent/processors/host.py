"""Which host this is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

from npuscope.monitor.agent.processors.text_hash import hardware_hash

INTERFACES = Path("/sys/class/net")
LOOPBACK = 8
"""IFF_LOOPBACK among an interface's flags."""


def host_name() -> str:
    """As the system calls it."""
    return socket.gethostname()


def host_number(interfaces: Path = INTERFACES) -> str:
    """The vendor's `hostUid`: decimal, the same for every process of the host; empty when no card can be seen."""
    return hardware_hash(_addresses(interfaces))


def _addresses(interfaces: Path) -> Iterator[bytes]:
    try:
        folders = sorted(interfaces.iterdir())
    except OSError:
        return
    for folder in folders:
        try:
            flags = int((folder / "flags").read_text(), 16)
            address = bytes.fromhex((folder / "address").read_text().strip().replace(":", ""))
        except (OSError, ValueError):
            continue
        if not flags & LOOPBACK:
            yield address
