"""Where the reader lays messages for somebody with time: bounded, and never waited for by the one who lays them."""

from __future__ import annotations

import queue
from dataclasses import dataclass

MOST_BYTES = 16 * 1024 * 1024
MOST_LETTERS = 20_000


@dataclass(frozen=True)
class Letter:
    """A message and who sent it, as the kernel says."""

    pid: int
    uid: int
    payload: bytes


class Inbox:
    """One thread puts, another takes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._queue: queue.SimpleQueue[Letter | None] = queue.SimpleQueue()
        self._most_bytes = most_bytes
        # Two counters, each written by one thread only, so that neither needs a lock.
        self._put_bytes = 0
        self._taken_bytes = 0

    def put(self, letter: Letter) -> bool:
        """Lay a message down; False when there is no room for it."""
        size = len(letter.payload)
        if self._put_bytes - self._taken_bytes + size > self._most_bytes or self._queue.qsize() >= MOST_LETTERS:
            return False
        self._put_bytes += size
        self._queue.put(letter)
        return True

    def take(self, most: int) -> list[Letter]:
        """Wait for messages; returns some, or none once the inbox is closed and empty."""
        found: list[Letter] = []
        letter = self._queue.get()
        while letter is not None:
            found.append(letter)
            self._taken_bytes += len(letter.payload)
            if len(found) >= most:
                return found
            try:
                letter = self._queue.get_nowait()
            except queue.Empty:
                return found
        self._queue.put(None)  # for the next call
        return found

    def close(self) -> None:
        """No more will come."""
        self._queue.put(None)
