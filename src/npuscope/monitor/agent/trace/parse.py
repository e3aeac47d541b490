"""The process that parses: `python -m npuscope.monitor.agent.trace.parse FOLDER...`, or `--await PID` for the parser
that a training process starts in advance. That one reads on its standard input which folder will be written, and begins
when the input ends: the folder is whole then, or the process has died and there is none.

Exit code 0 when every folder was parsed, 1 when one was not; why stands in the folder's log.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
from pathlib import Path

NICENESS = 19
LOOK_SECONDS = 1.0
"""How often it is looked whether the process that waits for us still lives: its forks may keep the input open."""


def main(words: list[str]) -> int:
    """Parse folders; returns the exit code."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    if words[:1] == ["--await"]:
        folder = awaited(int(words[1]))
        words = [str(folder)] if folder else []
    return max((parsed(Path(word)) for word in words), default=0)


def awaited(parent: int) -> Path | None:
    """The folder to parse, once it is whole; None when there is none."""
    received = b""
    while True:
        # What there is to read comes first: whoever wrote it may have died before we were there.
        if select.select([0], [], [], LOOK_SECONDS)[0]:
            piece = os.read(0, 65536)
            if not piece:
                break
            received += piece
        elif os.getppid() != parent:
            break
    names = received.splitlines()
    if not names:
        return None
    folder = Path(os.fsdecode(names[-1]))
    if folder.is_dir():
        return folder
    from npuscope.monitor.agent.trace.naming import part_of

    shutil.rmtree(part_of(folder), ignore_errors=True)
    return None


def parsed(folder: Path) -> int:
    """Parse one folder: 0, or 1 when that failed."""
    from npuscope.monitor.agent.trace.parsing.deliver import deliver

    try:
        deliver(folder)
    except Exception:  # `deliver` has written why
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
