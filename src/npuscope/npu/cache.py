"""The scalar unit's data cache of global memory: write-back, and not coherent with anybody else (hardware.md 1.4, 3.5).

A line stays as it was loaded until it is evicted or invalidated, so a stale value is really read; it is written back
whole, so that bytes which another core changed meanwhile are really lost. Copies by MTE and FIX pass it by.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.npu.memory import Memory

if TYPE_CHECKING:
    from npuscope.npu.core import Core

DType = np.dtype[Any]

_FORMATS = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H",
            "u4": "I", "u8": "Q", "b1": "?"}
"""struct's letter for a numpy type's kind and width."""


@cache
def decoder(dtype: DType) -> Callable[[Any, int], Any]:
    """``read(buffer, offset)``: the element of `dtype` at a byte offset, as a Python number."""
    letter = _FORMATS.get(f"{dtype.kind}{dtype.itemsize}")
    if letter is not None:
        unpack = struct.Struct("<" + letter).unpack_from
        return lambda buffer, offset: unpack(buffer, offset)[0]
    number = int if dtype.name.startswith(("int", "uint")) else float
    return lambda buffer, offset: number(np.frombuffer(bytes(buffer[offset : offset + dtype.itemsize]), dtype)[0])


@cache
def encoder(dtype: DType) -> Callable[[Any], bytes]:
    """``write(value)``: the bytes of a Python number as an element of `dtype`; integers wrap."""
    size = dtype.itemsize
    if dtype.kind in "iu" and dtype.name.startswith(("int", "uint")):
        mask = (1 << 8 * size) - 1
        return lambda value: (int(value) & mask).to_bytes(size, "little")
    letter = _FORMATS.get(f"{dtype.kind}{size}", "")
    if letter in ("e", "f", "d"):
        pack = struct.Struct("<" + letter).pack

        def write(value: Any) -> bytes:
            try:
                return pack(value)
            except OverflowError:  # larger than the type's largest: infinite
                return pack(math.copysign(math.inf, value))

        return write
    return lambda value: np.asarray(value, np.float64).astype(dtype).tobytes()


class Line:
    """One cached line: `offset` of its first byte in `memory`, its content, which bytes this core wrote (one bit a
    byte), and whether a stale read of it was reported."""

    __slots__ = ("memory", "offset", "data", "written", "reported", "site")

    def __init__(self, memory: Memory, offset: int, data: bytearray) -> None:
        self.memory = memory
        self.offset = offset
        self.data = data
        self.written = 0
        self.reported = False
        self.site = 0


class ScalarCache:
    """The data cache of one core. Fully associative with least-recently-used replacement (A: how the device chooses
    is not published)."""

    def __init__(self, core: Core, nbytes: int, line_bytes: int) -> None:
        self.core = core
        self.line_bytes = line_bytes
        self.capacity = nbytes // line_bytes
        self.lines: dict[int, Line] = {}  # by line number, least recently used first

    # -- access --------------------------------------------------------------------------------------------------

    def read(self, memory: Memory, address: int, dtype: DType) -> Any:
        """The element at device address `address`, from the cache if it is there; 0 outside `memory`."""
        offset = address - memory.base
        size = dtype.itemsize
        if offset < 0 or offset + size > memory.size:
            return decoder(dtype)(bytes(size), 0)
        number, at = divmod(address, self.line_bytes)
        if at + size > self.line_bytes:
            return decoder(dtype)(self._bytes_across(memory, address, size), 0)
        line = self._line(number, memory)
        if line.data[at : at + size] != memory.bytes[offset : offset + size].tobytes():
            self._stale(line, at, size, dtype)
        return decoder(dtype)(line.data, at)

    def write(self, memory: Memory, address: int, dtype: DType, value: Any) -> None:
        """Put an element into its line, which becomes dirty; outside `memory` it is dropped."""
        offset = address - memory.base
        raw = encoder(dtype)(value)
        if offset < 0 or offset + len(raw) > memory.size:
            return
        while raw:
            number, at = divmod(address, self.line_bytes)
            part = raw[: self.line_bytes - at]
            line = self._line(number, memory)
            line.data[at : at + len(part)] = part
            line.written |= ((1 << len(part)) - 1) << at
            line.site = self.core.site
            raw, address = raw[len(part) :], address + len(part)

    def preload(self, memory: Memory, address: int) -> None:
        """Load the line of an address; outside `memory` nothing happens."""
        if memory.base <= address < memory.base + memory.size:
            self._line(address // self.line_bytes, memory)

    def _bytes_across(self, memory: Memory, address: int, size: int) -> bytes:
        """Bytes that lie in two lines."""
        number, at = divmod(address, self.line_bytes)
        first = bytes(self._line(number, memory).data[at:])
        return first + bytes(self._line(number + 1, memory).data[: size - len(first)])

    def _line(self, number: int, memory: Memory) -> Line:
        """The line, loaded if it was not there; it becomes the most recently used one."""
        lines = self.lines
        line = lines.pop(number, None)
        if line is None:
            if len(lines) >= self.capacity:
                self._write_back(lines.pop(next(iter(lines))))
            offset = number * self.line_bytes - memory.base
            data = bytearray(self.line_bytes)
            content = memory.bytes[max(offset, 0) : offset + self.line_bytes].tobytes()
            start = max(-offset, 0)
            data[start : start + len(content)] = content
            line = Line(memory, offset, data)
        lines[number] = line
        return line

    def _stale(self, line: Line, at: int, size: int, dtype: DType) -> None:
        """Note that a read gave something else than what memory holds, unless this core wrote it; once per line."""
        if line.reported or line.written >> at & ((1 << size) - 1):
            return
        line.reported = True
        memory = line.memory
        raw = memory.bytes[line.offset + at : line.offset + at + size].tobytes()
        self.core.fault(
            "stale_read", address=memory.base + line.offset + at, read=decoder(dtype)(line.data, at),
            memory=decoder(dtype)(raw, 0),
        )

    # -- write-back and invalidation ----------------------------------------------------------------------------

    def clean_and_invalidate(self, address: int) -> None:
        """DCCI of one line: written back if dirty, and dropped."""
        line = self.lines.pop(address // self.line_bytes, None)
        if line is not None:
            self._write_back(line)

    def clean_and_invalidate_all(self) -> None:
        """DCCI of the entire cache."""
        self.clean_all()
        self.lines.clear()

    def clean_all(self) -> None:
        """Write back every dirty line, in the order of their last use."""
        for line in self.lines.values():
            self._write_back(line)

    def is_stale(self, memory: Memory, address: int) -> bool:
        """Whether the line of an address is cached and memory has changed since."""
        line = self.lines.get(address // self.line_bytes)
        if line is None or line.memory is not memory:
            return False
        start = max(line.offset, 0)
        content = memory.bytes[start : line.offset + self.line_bytes].tobytes()
        return content != bytes(line.data[start - line.offset : start - line.offset + len(content)])

    def _write_back(self, line: Line) -> None:
        if not line.written:
            return
        memory = line.memory
        start = max(line.offset, 0)
        end = min(line.offset + self.line_bytes, memory.size)
        if memory.bytes.flags.writeable:
            self._report_lost(line, start, end)
            mine = line.data[start - line.offset : end - line.offset]
            memory.bytes[start:end] = np.frombuffer(mine, np.uint8)
            self.core.machine.changes += 1
        line.written = 0

    def _report_lost(self, line: Line, start: int, end: int) -> None:
        """Bytes that this core did not write but puts back to what they were when it loaded the line."""
        now = memory_bytes = line.memory.bytes[start:end]
        mine = np.frombuffer(line.data, np.uint8)[start - line.offset : end - line.offset]
        differs = np.flatnonzero(now != mine)
        lost = [int(at) for at in differs if not line.written >> (int(at) + start - line.offset) & 1]
        if lost:
            self.core.fault(
                "lost_write", address=line.memory.base + start + lost[0], bytes=len(lost),
                newer=memory_bytes[lost].tolist(), older=mine[lost].tolist(), store_site=line.site,
            )
