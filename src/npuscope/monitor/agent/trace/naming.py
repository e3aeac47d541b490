"""The folder of one trace: how it is called, what lies where in it, and how it comes to be there whole."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from pathlib import Path

SUFFIX = "_ascend_pt"
PART = ".part"
"""Ends the name of a folder that is still being filled."""
RAW = Path("FRAMEWORK")
EVENTS = RAW / "torch_trace.json"
"""PyTorch's own export, as it wrote it."""
EXTRAS = RAW / "extras.json"
"""What was recorded beside it: garbage collections, the host's use, marks."""
METADATA = "profiler_metadata.json"
LOGS = "logs"
OUTPUT = "ASCEND_PROFILER_OUTPUT"
MODE = 0o750
FILE_MODE = 0o640
NAME = re.compile(rf"^(?P<host>.+)_(?P<pid>\d+)_\d{{17}}{SUFFIX}{re.escape(PART)}$")


def require_folder(folder: str) -> Path:
    """The output folder as an absolute path, made where it is missing. Raises OSError when nothing can be written
    there."""
    path = Path(os.path.abspath(folder))
    path.mkdir(mode=MODE, parents=True, exist_ok=True)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(13, "not writable", str(path))
    return path


def trace_folder(folder: Path, now: float) -> Path:
    """Where a trace goes that starts now: `<host>_<pid>_<time>_ascend_pt`, time in local time to the millisecond."""
    stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now)) + f"{int(now % 1 * 1000):03d}"
    return folder / f"{socket.gethostname()}_{os.getpid()}_{stamp}{SUFFIX}"


def part_of(folder: Path) -> Path:
    """The folder while it is being filled."""
    return folder.with_name(folder.name + PART)


def sweep(folder: Path) -> list[str]:
    """Remove what processes of this host left that died while they wrote; returns the names."""
    swept = []
    for path in folder.glob(f"*{SUFFIX}{PART}"):
        found = NAME.match(path.name)
        if found and found["host"] == socket.gethostname() and not lives(int(found["pid"])):
            shutil.rmtree(path, ignore_errors=True)
            swept.append(path.name)
    return swept


def lives(pid: int) -> bool:
    """Whether a process of this host lives."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
