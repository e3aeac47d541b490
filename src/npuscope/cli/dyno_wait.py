"""Waiting for trace files that other processes write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

STEP_SECONDS = 0.1
CLOCK_SECONDS = 2.0
"""File times may lag behind the clock."""


@dataclass(frozen=True)
class Awaited:
    """A file and the process that is to write it."""

    path: str
    pid: int


def wait_for(awaited: Sequence[Awaited], seconds: float, began: float, tell: Callable[[str], None]) -> list[Awaited]:
    """Wait until every file is there, written since `began` and complete; returns those that are not."""
    deadline = time.monotonic() + seconds
    missing = list(awaited)
    while True:
        for one in [one for one in missing if complete(one.path, began)]:
            tell(f"written: {one.path}")
            missing.remove(one)
        if not missing or time.monotonic() >= deadline:
            return missing
        time.sleep(STEP_SECONDS)


def complete(path: str, began: float) -> bool:
    """Whether the file is newer than `began` and ends as a JSON object does; writers rename it when it is whole."""
    try:
        if os.stat(path).st_mtime < began - CLOCK_SECONDS:
            return False
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 64))
            return file.read().rstrip().endswith(b"}")
    except OSError:
        return False
