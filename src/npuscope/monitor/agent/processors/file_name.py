"""The names of the files of a run, as every reader of them expects."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from npuscope.monitor.agent.processors.processor import Run

MILLISECOND = 10**6
"""In nanoseconds."""
MODE = 0o640
"""Of files; a process's umask may only tighten it."""


def stamp(milliseconds: int) -> str:
    """A moment, in milliseconds since the epoch, as the 17 digits of local time that file names have."""
    local = datetime.fromtimestamp(milliseconds // 1000)
    return f"{local:%Y%m%d%H%M%S}{milliseconds % 1000:03}"


def free_path(folder: Path, run: Run, milliseconds: int, suffix: str) -> tuple[Path, int]:
    """`msmonitor_<pid>_<stamp>_<rank><suffix>` with the first stamp from this moment on that no file has yet, and the
    moment that it stands for."""
    while True:
        path = folder / f"msmonitor_{run.pid}_{stamp(milliseconds)}_{run.rank}{suffix}"
        if not path.exists():
            return path, milliseconds
        milliseconds += 1
