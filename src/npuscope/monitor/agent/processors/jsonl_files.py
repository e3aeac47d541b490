"""The files of a run that hold its lines: a new one when the last is full, and only so many."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from npuscope.monitor.agent.processors.file_name import MILLISECOND, MODE, free_path
from npuscope.monitor.agent.processors.jsonl_settings import Settings
from npuscope.monitor.agent.processors.processor import Run

SUFFIX = ".jsonl"


class Files:
    """Appends whole lines. For one thread at a time. `header` gives the line above the first one of the run, which is
    not counted among the lines of its file."""

    def __init__(self, folder: Path, run: Run, settings: Settings, header: Callable[[], bytes]) -> None:
        self.written: list[Path] = []
        """Those that are kept, oldest first."""
        self._folder = folder
        self._run = run
        self._settings = settings
        self._header = header
        self._headed = False
        self._file = -1
        self._lines = 0
        self._moment = 0

    @property
    def room(self) -> int:
        """Lines that the next write may have."""
        return self._settings.lines - (self._lines if self._is_open() and self._lines < self._settings.lines else 0)

    def write(self, text: bytes, lines: int) -> None:
        """Append lines, not more than there is room for. Raises OSError; then none of them is there."""
        if not self._is_open() or self._lines >= self._settings.lines:
            self._open_next()
        head = b"" if self._headed else self._header()
        self._append(head + text)
        self._headed = True
        self._lines += lines

    def close(self) -> None:
        """Nothing is open any more."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def _is_open(self) -> bool:
        # A file that somebody removed or that was rotated away by others holds nothing for anybody.
        return self._file >= 0 and os.fstat(self._file).st_nlink > 0

    def _open_next(self) -> None:
        self.close()
        self._make_room()
        moment = max(time.time_ns() // MILLISECOND, self._moment + 1)
        path, self._moment = free_path(self._folder, self._run, moment, SUFFIX)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, MODE)
        self._lines = 0
        self.written.append(path)

    def _make_room(self) -> None:
        """Remove the oldest files of this run, so that the next one is the last that may be kept."""
        if self._settings.files < 0:
            return
        there = [(moment, path) for path in self.written if (moment := _changed(path)) is not None]
        there.sort()  # of two that changed at the same moment the name decides, which has the time too
        for _, path in there[: max(0, len(there) - self._settings.files + 1)]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        self.written = [path for path in self.written if path.exists()]

    def _append(self, text: bytes) -> None:
        begin = os.lseek(self._file, 0, os.SEEK_END)
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            self._take_back(begin)
            raise

    def _take_back(self, begin: int) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, begin)
        if begin == 0:  # a file that never held a line
            with contextlib.suppress(OSError):
                self.written.pop().unlink()
            self.close()


def _changed(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
