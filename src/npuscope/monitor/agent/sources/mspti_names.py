"""Texts at addresses of this process's memory.

They are read through the kernel, so that an address that leads nowhere costs a name and not the job.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from types import TracebackType

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.mspti_code import Walk

_PIECE = 256
_LONGEST = 1 << 16
"""Bytes of a text that are looked at; the rest is left out."""
_NEAR = 512
"""Bytes between two texts that are read together."""
_BLOCK = 1 << 18
"""Bytes that are read together at most."""


class Memory:
    """This process's own memory, open for one buffer's names: a child of `fork` would read its parent's."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1  # no /proc: read without a net

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            os.close(self._file)

    def text(self, address: int) -> str | None:
        """The text that ends with a zero byte, UTF-8 with replacement; None when it cannot be read."""
        if self._file < 0:
            return ctypes.string_at(address).decode(errors="replace")
        found = b""
        try:
            while len(found) < _LONGEST:
                piece = os.pread(self._file, _PIECE, address + len(found))
                end = piece.find(b"\0")
                if end >= 0:
                    return (found + piece[:end]).decode(errors="replace")
                if not piece:
                    return None
                found += piece
        except (OSError, OverflowError):
            return None
        return found.decode(errors="replace")

    def texts(self, addresses: Sequence[int]) -> Iterator[tuple[int, str | None]]:
        """The texts at ascending addresses, as `text`. What lies near each other is read together."""
        for group in _near(addresses):
            first = group[0]
            block = self._block(first, group[-1] - first + _PIECE) if len(group) > 1 else b""
            for address in group:
                end = block.find(b"\0", address - first)
                text = block[address - first : end].decode(errors="replace") if end >= 0 else self.text(address)
                yield address, text

    def _block(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._file, size, address) if self._file >= 0 else b""
        except (OSError, OverflowError):
            return b""


def _near(addresses: Sequence[int]) -> Iterator[Sequence[int]]:
    """Ascending addresses in groups: each near the one before, the whole not too large."""
    first = 0
    for i in range(1, len(addresses) + 1):
        if i == len(addresses) or addresses[i] - addresses[i - 1] > _NEAR or addresses[i] - addresses[first] > _BLOCK:
            if addresses:
                yield addresses[first:i]
            first = i


class Names:
    """Pointers of one buffer to numbers of texts; each different pointer is read once."""

    def __init__(self, memory: Memory, strings: Strings, code: Walk) -> None:
        self._memory = memory
        self._strings = strings
        self._code = code
        self._known: dict[int, int] = {0: strings.number("")}
        self.unreadable = 0
        """Names that could not be read; they count as empty."""

    def numbers(self, pointers: Column) -> Column:
        """int32, one for each pointer (int64)."""
        different, index = self._code.distinct(pointers)
        addresses = different.tolist()
        self._read(sorted(set(addresses) - self._known.keys()))
        return np.array([self._known[address] for address in addresses], np.int32)[index]

    def _read(self, addresses: list[int]) -> None:
        for address, text in self._memory.texts(addresses):
            if text is None:
                self.unreadable += 1
            self._known[address] = self._strings.number(text or "")
