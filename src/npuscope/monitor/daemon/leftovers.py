"""Sockets that PyTorch processes leave in the shared folder: they never take theirs away."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from npuscope.monitor.daemon.addresses import alive

PREFIX = "dynoconfigclient"
LEAST_AGE_SECONDS = 60.0
"""One that is just being made may not answer yet."""


def sweep(directory: str) -> int:
    """Remove the sockets on which nobody listens any more; returns how many. What may not be removed stays."""
    removed = 0
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _left_behind(entry):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                    removed += 1
    return removed


def _left_behind(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
        old = time.time() - found.st_mtime > LEAST_AGE_SECONDS
        return stat.S_ISSOCK(found.st_mode) and old and not alive(os.fsencode(entry.path))
    except OSError:
        return False
