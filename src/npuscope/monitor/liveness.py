"""Whether a process of this host still runs."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc")
DEAD = frozenset("ZXx")


def running(pid: int) -> bool:
    """Whether the process is there and has not ended; one that nobody has waited for has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    # The name, in brackets, may hold anything.
    return chr(text.rpartition(b")")[2].split()[0][0]) not in DEAD


def command_of(pid: int) -> str | None:
    """Its command line, None where it cannot be read."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return " ".join(word.decode(errors="replace") for word in words if word)
