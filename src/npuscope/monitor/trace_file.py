"""What can be told of a trace that another process writes: not there, being written, refused, whole, and how full."""

from __future__ import annotations

import enum
import mmap
import os
import re
from dataclasses import dataclass

CLOCK_SECONDS = 2.0
"""File times may lag behind the clock."""
EVENT = re.compile(rb'"ph"\s*:')
OPERATOR = re.compile(rb'"cat"\s*:\s*"cpu_op"')
TAIL = 64


class State(enum.Enum):
    """How far a file is."""

    MISSING = "missing"
    EMPTY = "empty"
    """The temporary file is there and holds nothing: the process has just begun, or it has refused the request."""
    WRITING = "writing"
    WHOLE = "whole"


@dataclass(frozen=True)
class Seen:
    """A look at a trace; `quiet` is for how long nothing has been written."""

    state: State
    size: int = 0
    quiet: float = 0.0


@dataclass(frozen=True)
class Contents:
    """How much a trace holds."""

    size: int
    events: int
    operators: int


def look(path: str, began: float, now: float) -> Seen:
    """A look at the trace that is written to `path` since `began`; writers rename it when it is whole."""
    if (whole := _status(path, began)) and whole.st_size:
        state = State.WHOLE if _tail(path).endswith(_ending(path)) else State.WRITING
        return Seen(state, whole.st_size, now - whole.st_mtime)
    if not (part := _status(f"{path}.tmp", began)):
        return Seen(State.MISSING)
    return Seen(State.WRITING if part.st_size else State.EMPTY, part.st_size, now - part.st_mtime)


def _ending(path: str) -> bytes:
    """What a whole file ends with: a trace is JSON, a memory snapshot is a pickle."""
    return b"." if path.endswith(".pickle") else b"}"


def _status(path: str, began: float) -> os.stat_result | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # a name that no file can have
        return None
    return found if found.st_mtime >= began - CLOCK_SECONDS else None


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            return file.read().rstrip()
    except OSError:
        return b""


def count(path: str) -> Contents:
    """How much is in a whole trace. Large ones are not read into memory. Raises OSError when it is gone."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return Contents(0, 0, 0)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return Contents(size, _occurrences(EVENT, text), _occurrences(OPERATOR, text))


def _occurrences(pattern: re.Pattern[bytes], text: mmap.mmap) -> int:
    return sum(1 for _ in pattern.finditer(text))
