"""Buffers for the activity library: at most 32 of 8 MiB, as the vendor's monitor has, lent and taken back without the
interpreter.

The memory is never unmapped: a thread of the library may hold a buffer until the process is gone. A buffer costs memory
only from its first use on, the lowest free one is lent first, and `trim` gives the memory of free ones back.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import select

import numpy as np

from npuscope.monitor.agent.sources import mspti_code as code
from npuscope.monitor.agent.sources.source import Unavailable

SIZE = 8 << 20
"""Bytes in a buffer."""
COUNT = code.COUNT
_PAGE = mmap.PAGESIZE
_NO_RESERVE = 0x4000  # MAP_NORESERVE of asm-generic/mman-common.h, which Python does not name


class Pool:
    """One for a process."""

    def __init__(self) -> None:
        """Raises Unavailable when there is no memory, or the callbacks cannot be compiled."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
        )  # fmt: skip
        self._libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._first = self._map(SIZE * COUNT)
        state = self._map(-(-8 * code.WORDS // _PAGE) * _PAGE)
        self._words = np.ctypeslib.as_array((ctypes.c_int64 * code.WORDS).from_address(state))
        self._words[code.ADDRESS : code.ADDRESS + COUNT] = self._first + SIZE * np.arange(COUNT)
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._words[code.DESCRIPTOR] = self._descriptor
        self._waiting = select.poll()
        self._waiting.register(self._descriptor, select.POLLIN)
        self.callbacks = code.Callbacks(state, SIZE)

    def _map(self, size: int) -> int:
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        address = self._libc.mmap(None, size, protection, flags, -1, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise Unavailable(f"no memory for {SIZE * COUNT >> 20} MiB of buffers: {os.strerror(ctypes.get_errno())}")
        return int(address)

    def open(self) -> None:
        """Lend buffers from now on."""
        self._words[code.OPEN] = 1

    def close(self) -> None:
        """Lend no more; whatever is asked for now is not counted as refused."""
        self._words[code.OPEN] = 0

    @property
    def refused(self) -> int:
        """Requests that found no free buffer, since the process began."""
        return int(self._words[code.REFUSED])

    @property
    def foreign(self) -> int:
        """Buffers returned that were not ours."""
        return int(self._words[code.FOREIGN])

    @property
    def turns(self) -> int:
        """Buffers returned so far."""
        return int(self._words[code.TURNS])

    @property
    def complete(self) -> int:
        """Buffers that were returned and not read yet."""
        return int((self._words[code.STATUS : code.STATUS + COUNT] == code.COMPLETE).sum())

    def oldest(self) -> tuple[int, int, int] | None:
        """Number, address and bytes in use of the buffer that was returned first, None when there is none."""
        index = int(self.callbacks.oldest())
        if index < 0:
            return None
        return index, self._first + SIZE * index, min(int(self._words[code.VALID + index]), SIZE)

    def give_back(self, index: int) -> None:
        """A buffer has been read."""
        self.callbacks.give_back(index)

    def wait(self, seconds: float) -> None:
        """Until a buffer is returned or `wake` is called, or the time is over."""
        if self._waiting.poll(1000 * seconds):
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._descriptor)

    def wake(self) -> None:
        """End a `wait`."""
        os.eventfd_write(self._descriptor, 1)

    def trim(self) -> None:
        """Give the memory of the free buffers back to the system; nothing may be lent meanwhile (`close`)."""
        for index in np.flatnonzero(self._words[code.STATUS : code.STATUS + COUNT] == code.FREE):
            self._libc.madvise(self._first + SIZE * int(index), SIZE, mmap.MADV_DONTNEED)
