"""The agent's log: one file a process, in the vendor's form, made when there is something to say.

Nothing here raises: a log that cannot be written is written to standard error as far as it matters, else not at all.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from npuscope.monitor.protocol.codes import Code

FOLDER_VARIABLE = "MSMONITOR_LOG_PATH"
FOLDER = "msmonitor_log"
MODULE = 0
"""Of the vendor's sub-modules, the one that talks to the daemon: `IPC`."""
MOST_CHARACTERS = 16 * 1024 * 1024
"""A job runs for months; its log ends here."""


class Log:
    """Takes lines from any thread."""

    def __init__(self, folder: str | None = None) -> None:
        """`folder` is where `msmonitor_log` is made; default: as MSMONITOR_LOG_PATH says, else the current one."""
        self._folder = folder
        self._stream: TextIO | None = None
        self._failed = False
        self._room = MOST_CHARACTERS
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self.path: Path | None = None

    def info(self, text: str) -> None:
        """Something that happened as it should."""
        self._write("I", text)

    def warning(self, text: str) -> None:
        """Something that a person may want to change."""
        self._write("W", text)

    def warn_once(self, text: str) -> None:
        """The same, said once in the life of the process."""
        if text not in self._said:
            self._said.add(text)
            self.warning(text)

    def error(self, code: Code, text: str) -> None:
        """Something that was not done, with the vendor's code."""
        stamp = _stamp("%Y%m%d%H%M%S")
        words = f"{text} [{code.text}]"
        self._write("E", f"\n[ERROR] {stamp} (PID:{os.getpid()})ERR{MODULE:02d}{int(code):03d} IPC {words}")

    def close(self) -> None:
        """Nothing more will be said."""
        with self._lock, contextlib.suppress(OSError):
            if self._stream:
                self._stream.close()
            self._stream, self._failed = None, True

    def _write(self, letter: str, text: str) -> None:
        now = time.time()
        clock = time.strftime("%Y%m%d %H:%M:%S", time.localtime(now))
        line = f"{letter}{clock}.{int(now % 1 * 1e6):06d} {threading.get_native_id()} agent] {text}\n"
        with self._lock:
            stream = self._stream or self._opened()
            if stream is None:
                if letter != "I":
                    _say(f"npuscope: {text.strip()}\n")
                return
            if self._room <= 0:
                return
            self._room -= len(line)
            if self._room <= 0:
                line += "the log ends here: it is full\n"
            with contextlib.suppress(OSError, ValueError):
                stream.write(line)

    def _opened(self) -> TextIO | None:
        """The file, made now; None when that is impossible, which is tried once."""
        if self._failed:
            return None
        folder = self._folder or os.environ.get(FOLDER_VARIABLE) or "."
        path = Path(os.path.abspath(folder)) / FOLDER / f"msmonitor_{os.getpid()}_{_stamp('%Y%m%d%H%M%S')}.log"
        try:
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            self._stream = os.fdopen(descriptor, "a", buffering=1, encoding="utf-8", errors="backslashreplace")
        except OSError:
            self._failed = True
            return None
        self.path = path
        _say(f"[INFO] [{os.getpid()}] msMonitor log will record to {path}\n")
        return self._stream


def _stamp(form: str) -> str:
    now = time.time()
    return time.strftime(form, time.localtime(now)) + f"{int(now % 1 * 1000):03d}"


def _say(line: str) -> None:
    """A line to standard error, which a program may have closed."""
    with contextlib.suppress(Exception):
        sys.stderr.write(line)
