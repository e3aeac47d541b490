"""What the system says of a process of this host. A look into /proc is slow, as polls go: whoever answers them does
not look, or looks once."""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Mapping
from pathlib import Path

PROC = Path("/proc")
DEAD = frozenset("ZXx")
RANKS = ("RANK", "RANK_ID")
"""Variables in which launchers tell a process its rank; the first counts."""


def running(pid: int) -> bool:
    """Whether the process is there and has not ended; one that nobody has waited for has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    # The name, in brackets, may hold anything.
    return chr(text.rpartition(b")")[2].split()[0][0]) not in DEAD


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


def user_of(pid: int) -> int | None:
    """The user as whom a process runs; None when it is not to be seen."""
    try:
        return os.stat(PROC / str(pid)).st_uid
    except OSError:
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


def command(pid: int, longest: int = 200) -> str:
    """The command line of a process, shortened; "" when it has none or may not be seen."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)[:longest]


def environment(pid: int) -> dict[str, str] | None:
    """The variables that a process was started with; None when they may not be seen."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    found: dict[str, str] = {}
    for entry in entries:
        name, _, value = entry.decode(errors="replace").partition("=")
        found.setdefault(name, value)  # of two, the program sees the first
    return found


def rank(variables: Mapping[str, str] | None) -> int | None:
    """A process's rank in its job, by what it was started with."""
    words = (variables[name] for name in RANKS if variables and name in variables)
    return next((int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 10), None)


@functools.lru_cache(maxsize=1024)
def user_name(uid: int) -> str:
    """The name of a user, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
