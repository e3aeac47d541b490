"""`visualize_data.bin`: the container that MindStudio Insight loads (opprof.md 2.7). Blocks one behind the other, each
with a 12-byte header, little endian:

====== ==== ===========================================================================================
offset type what
====== ==== ===========================================================================================
0      u64  bytes that follow: the payload and its padding; not the 4096-byte path of a CODE block
8      u8   :class:`BlockType`
9      u8   bytes of padding, 0 to 3, that make the payload a multiple of four
10     u8   version, 0x5A; an INSTR_API block with 0 maps instructions to lines by name instead of by address
11     u8   0x5A
====== ==== ===========================================================================================
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from npuscope.errors import UserError
from npuscope.profiler.writers.large_file import LargeFile
from npuscope.profiler.writers.whole import whole
from npuscope.trace.timeline import Loss

HEADER = struct.Struct("<QBBBB")
VERSION = MAGIC = 0x5A
PATH_BYTES = 4096
MEGABYTE = 1 << 20
LARGEST_FILE = 10 << 30
"""Bytes that a file may have (opprof.md 1.10)."""


class BlockType(IntEnum):
    """What a block holds."""

    CODE = 0x01
    TRACE = 0x02
    FILE_API = 0x03
    INSTR_API = 0x04
    OP_BASIC_INFO = 0x05
    COMPUTE_LOAD_FIGURE = 0x06
    COMPUTE_LOAD_TABLE = 0x07
    STORAGE_ACCESS_HEAT_MAP = 0x08
    STORAGE_ACCESS_TABLE = 0x09
    OCCUPANCY_MAP = 0x0C
    ROOF_LINE = 0x0D
    CACHELINE_HEAT_MAP = 0x0E
    TOP_STALL_REASON = 0x0F


LIMITS = {BlockType.INSTR_API: 200 * MEGABYTE, BlockType.CODE: LARGEST_FILE, BlockType.TRACE: LARGEST_FILE}
DETAIL_LIMIT = 100 * MEGABYTE
"""Bytes that a block may have (V9): those of the details, and the exceptions above."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `payload` is without padding; a long one may come in pieces. `path` is that of a CODE block's file."""

    type: BlockType
    payload: bytes | Iterable[bytes | memoryview]
    path: str = ""
    version: int = VERSION

    def pieces(self) -> Iterable[bytes | memoryview]:
        """The payload piece by piece."""
        return (self.payload,) if isinstance(self.payload, bytes) else self.payload

    @property
    def text(self) -> bytes:
        """The payload of a block that was read."""
        return self.payload if isinstance(self.payload, bytes) else b"".join(self.payload)


def write_bin(path: Path, blocks: Iterable[Block]) -> list[Loss]:
    """Write a file, whole or not at all; returns what had to be left out of it.

    A block that is empty or too large is left out, and so is every one with which the file would be. No file is
    written where nothing is left; an older one of that name goes. A block of another version never comes first, because
    the viewer takes such a file for something else (V1). Raises OSError.
    """
    losses: list[Loss] = []
    with whole(path) as file:
        for block in _known_first(blocks):
            loss = _append(file, block)
            if loss is not None:
                losses.append(loss)
    return losses


def _known_first(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, those of another version behind the first one that has ours. Raises ValueError where none has."""
    waiting: list[Block] = []
    started = False
    for block in blocks:
        if not started and block.version != VERSION:
            waiting.append(block)
            continue
        yield block
        started = True
        yield from waiting
        waiting = []
    if waiting:
        raise ValueError("a file cannot consist of version 0 blocks alone: the viewer would not recognise it")


def _append(file: LargeFile, block: Block) -> Loss | None:
    """Write a block at the end of the file; where it cannot be, the file is as before and the loss is returned."""
    begin = file.tell()
    limit = LIMITS.get(block.type, DETAIL_LIMIT)
    name = _path_field(block)
    if name is None:
        return _loss(block, f"the path of {block.path[-60:]} is too long")
    file.write(HEADER.pack(0, block.type, 0, block.version, MAGIC) + name)
    size = 0
    for piece in block.pieces():
        size += len(piece)
        if size > limit:
            return _undo(file, begin, _loss(block, f"it is larger than {limit // MEGABYTE} MB"))
        if begin + HEADER.size + len(name) + size + 3 > LARGEST_FILE:
            return _undo(file, begin, _loss(block, f"the file would be larger than {LARGEST_FILE >> 30} GB"))
        file.write(piece)
    if not size:
        return _undo(file, begin, _loss(block, "it is empty") if block.type is not BlockType.CODE else None)
    padding = -size % 4
    file.write(bytes(padding))
    end = file.tell()
    file.seek(begin)
    file.write(HEADER.pack(size + padding, block.type, padding, block.version, MAGIC))
    file.seek(end)
    return None


def _path_field(block: Block) -> bytes | None:
    if block.type is not BlockType.CODE:
        return b""
    name = block.path.encode()
    return name.ljust(PATH_BYTES, b"\0") if len(name) < PATH_BYTES else None


def _undo(file: LargeFile, begin: int, loss: Loss | None) -> Loss | None:
    file.seek(begin)
    file.truncate()
    return loss


def _loss(block: Block, why: str) -> Loss:
    return Loss("block", f"visualize_data.bin: block {block.type.name} is left out: {why}", count=1, total=1)


def read_bin(path: Path) -> list[Block]:
    """The blocks of a file. Raises UserError, with the place, for what is no such file or ends too early."""
    data = path.read_bytes()
    found = []
    at = 0
    while at < len(data):
        if at + HEADER.size > len(data):
            raise UserError(f"{path}: the file ends inside the header of a block at byte {at}")
        size, number, padding, version, magic = HEADER.unpack_from(data, at)
        if magic != MAGIC or padding > 3 or size <= padding:
            raise UserError(f"{path}: no block begins at byte {at}")
        try:
            kind = BlockType(number)
        except ValueError:
            raise UserError(f"{path}: block of unknown type {number:#04x} at byte {at}") from None
        begin = at + HEADER.size
        name = data[begin : begin + PATH_BYTES] if kind is BlockType.CODE else b""
        begin += len(name)
        if begin + size > len(data):
            raise UserError(f"{path}: the file ends inside block {kind.name} at byte {at}")
        text = name.rstrip(b"\0").decode(errors="surrogateescape")
        found.append(Block(kind, data[begin : begin + size - padding], text, version))
        at = begin + size
    return found
