"""Device memory that a script allocates itself: its blocks, what the host does with them, all of it in the trace."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from npuscope.frontends.uninitialised import Poison, address_of
from npuscope.npu.device_addresses import ALIGNMENT, BLOCKS, GAP
from npuscope.npu.memory import borrow
from npuscope.trace.recorder import Recorder
from npuscope.trace.schema import HOST_MEMORY, NO_BLOCK, HostKind, Site

QUARANTINE = 64 << 20
"""Bytes of freed blocks that are kept apart, so that a late use finds the block and not its successor."""

MAX_BLOCK = 1 << 40


@dataclass(slots=True)
class Block:
    """One allocation: the bytes that the script may use and their device address."""

    serial: int
    data: np.ndarray
    start: int  # host address
    base: int  # device address

    @property
    def end(self) -> int:
        """Host address one past the last byte."""
        return self.start + self.data.size


class Heap:
    """Blocks by host address. `site` gives the user's place for an operation of a name."""

    def __init__(self, recorder: Recorder, site: Callable[[str], Site], poison: Poison | None = None) -> None:
        self._recorder = recorder
        self._site = site
        self._poison = poison
        self._live: dict[int, Block] = {}
        self._freed: deque[Block] = deque()
        self._starts: list[int] = []
        self._blocks: list[Block] = []  # live and in quarantine, by address
        self._next = BLOCKS
        self._sites: dict[Site, int] = {}
        self._kept = 0  # bytes in quarantine

    def malloc(self, size: int) -> int:
        """A block of `size` bytes; returns its host address. Raises MemoryError when the host has no room."""
        if not 0 <= size <= MAX_BLOCK:
            raise MemoryError
        whole = np.empty(size + ALIGNMENT, np.uint8)
        start = -(-address_of(whole) // ALIGNMENT) * ALIGNMENT
        data = whole[start - address_of(whole) :][:size]
        if self._poison is not None:
            self._poison.fill(data)
        serial = self._note(HostKind.MALLOC, "rt.malloc", self._next, size=size)
        block = self._live[start] = Block(serial, data, start, self._next)
        self._next = -(-(self._next + size + GAP) // ALIGNMENT) * ALIGNMENT
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._blocks.insert(at, block)
        return start

    def free(self, pointer: int, operation: str = "rt.free") -> None:
        """Give a block back; a pointer that is none is noted and nothing else happens."""
        self._note(HostKind.FREE, operation, self.device(pointer))
        block = self._live.pop(pointer, None)
        if block is None:
            return
        self._freed.append(block)
        self._kept += block.data.size
        while self._kept > QUARANTINE and len(self._freed) > 1:
            self._forget(self._freed.popleft())

    def copy(self, target: int, source: int, size: int, room: int, to_device: bool, from_device: bool) -> None:
        """Copy as far as both sides have memory: bytes read outside a block are zero, bytes written there are lost."""
        self._note(
            HostKind.COPY, "rt.memcpy", self.device(target) if to_device else HOST_MEMORY,
            self.device(source) if from_device else HOST_MEMORY, size, room,
        )
        content = np.zeros(size, np.uint8)
        available = self._within(source, size) if from_device else borrow(source, size, False, None)
        content[: available.size] = available
        place = self._within(target, size) if to_device else borrow(target, size, True, None)
        place[:] = content[: place.size]

    def free_all(self, operation: str) -> None:
        """Give back every block that is live."""
        for start in list(self._live):
            self.free(start, operation)

    def find(self, pointer: int) -> Block | None:
        """The block, live or freed of late, that holds a host address."""
        at = bisect_right(self._starts, pointer) - 1
        return self._blocks[at] if at >= 0 and pointer < self._blocks[at].end else None

    def device(self, pointer: int) -> int:
        """The device address of a host address, NO_BLOCK when it is in no block."""
        block = self.find(pointer)
        return NO_BLOCK if block is None else block.base + pointer - block.start

    def _within(self, pointer: int, size: int) -> np.ndarray:
        block = self.find(pointer)
        return np.empty(0, np.uint8) if block is None else block.data[pointer - block.start :][:size]

    def _forget(self, block: Block) -> None:
        at = bisect_right(self._starts, block.start) - 1
        del self._starts[at], self._blocks[at]
        self._kept -= block.data.size

    def _note(
        self, kind: HostKind, operation: str, target: int, source: int = HOST_MEMORY, size: int = 0, room: int = 0
    ) -> int:
        if not self._recorder.consumers:
            return NO_BLOCK
        site = self._site(operation)
        number = self._sites.get(site)
        if number is None:
            number = self._sites[site] = self._recorder.add_site(site)
        return self._recorder.add_host_event(kind, number, target, source, size, room)
