"""Files of hundreds of megabytes, written past the system's cache where it can be.

What is written in the ordinary way stays in memory: it pushes out what others had there, and giving a gigabyte of
memory to files takes seconds of the system's time, on a virtual machine above all. Nobody reads these files at once, so
the system is told to let go of them as soon as they are on disk (RWF_DONTCACHE, Linux 6.14); where it does not know
that, they are written as ever.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DONT_CACHE = 0x80
"""RWF_DONTCACHE of ``linux/fs.h``; Python has no name for it yet."""
UNKNOWN_FLAG = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
PAGE = 4096
"""Writes end at such places: the rest of a page that was let go would have to be read again."""
HELD, PIECE = 1 << 16, 1 << 20
"""Bytes that are collected before they are written, and that are read at a time."""


class LargeFile(io.BufferedIOBase):
    """A file to write, open at `handle`, which it closes. It can go back and write over what it wrote."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._flags = DONT_CACHE if hasattr(os, "pwritev") else 0
        self._held = bytearray()

    def write(self, data: Any) -> int:
        """Take bytes; all of them."""
        view = memoryview(data).cast("B")
        total = len(self._held) + len(view)
        if total < HELD:
            self._held += view
            return len(view)
        last = (os.lseek(self._handle, 0, os.SEEK_CUR) + total) % PAGE
        taken = max(len(view) - last, 0)
        self._put(bytes(self._held), view[:taken])
        self._held = bytearray(view[taken:])
        return len(view)

    def flush(self) -> None:
        """Write what is held."""
        held, self._held = bytes(self._held), bytearray()
        if held:
            self._put(held)

    def tell(self) -> int:
        """Where the next byte goes."""
        return os.lseek(self._handle, 0, os.SEEK_CUR) + len(self._held)

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self.flush()
        return os.lseek(self._handle, place, whence)

    def truncate(self, size: int | None = None) -> int:
        """End the file, here where no size is given."""
        self.flush()
        size = self.tell() if size is None else size
        os.ftruncate(self._handle, size)
        return size

    def fileno(self) -> int:
        """The system's number of it."""
        return self._handle

    def close(self) -> None:
        """Write what is held, and close it."""
        if not self.closed:
            try:
                self.flush()
            finally:
                super().close()
                os.close(self._handle)

    def _put(self, *parts: bytes | memoryview) -> None:
        """Write parts one behind the other. Raises OSError."""
        left: list[bytes | memoryview] = [part for part in parts if len(part)]
        while left:
            done = self._some(left)
            while left and done >= len(left[0]):
                done -= len(left.pop(0))
            if done:
                left[0] = memoryview(left[0])[done:]

    def _some(self, parts: list[bytes | memoryview]) -> int:
        if self._flags:
            try:
                return os.pwritev(self._handle, parts, -1, self._flags)  # at the file's own place
            except OSError as error:
                if error.errno not in UNKNOWN_FLAG:
                    raise
                self._flags = 0
        return os.writev(self._handle, parts)


def pieces_of(path: Path) -> Iterator[memoryview]:
    """A file's content piece by piece; each is gone when the next one comes. Raises OSError."""
    room = memoryview(bytearray(PIECE))
    flags = DONT_CACHE if hasattr(os, "preadv") else 0
    handle, place = os.open(path, os.O_RDONLY), 0
    try:
        while True:
            try:
                size = os.preadv(handle, [room], place, flags) if flags else os.readv(handle, [room])
            except OSError as error:
                if not flags or error.errno not in UNKNOWN_FLAG:
                    raise
                os.lseek(handle, place, os.SEEK_SET)
                flags = 0
                continue
            if not size:
                return
            place += size
            yield room[:size]
    finally:
        os.close(handle)
