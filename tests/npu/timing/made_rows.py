"""Launches made by hand, an instruction at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.npu.machine import cube_cores, mixed_cores, vector_cores
from npuscope.trace.events import HardEvent
from npuscope.trace.footprint import Footprint, intern
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import (
    ACCESS_COLUMNS,
    INSTRUCTION_COLUMNS,
    OPCODES,
    Buffer,
    Launch,
    Origin,
    Pipe,
    Role,
    Site,
    Space,
)  # fmt: skip

GM = 0x1000_0000_0000
BUFFERS = [
    Buffer(Space.GM, -1, GM, 1 << 32, "argument", "x", "float32"),
    Buffer(Space.UB, 0, 0, 196608, "tensor", "u", "float32"),
    Buffer(Space.L1, 0, 0, 524288, "tensor", "l", "float16"),
    Buffer(Space.L0A, 0, 0, 65536, "tensor", "a", "float16"),
    Buffer(Space.L0B, 0, 0, 65536, "tensor", "b", "float16"),
    Buffer(Space.L0C, 0, 0, 131072, "tensor", "c", "float32"),
]
NUMBER = {buffer.space: number for number, buffer in enumerate(BUFFERS)}
KINDS = {"vector": vector_cores, "cube": cube_cores, "mix": mixed_cores}


class Trace:
    """Collects the rows of a launch of `blocks` blocks."""

    def __init__(self, blocks: int = 1, kind: str = "vector", **options: str) -> None:
        self.launch = Launch(0, "made", "Ascend910B1", KINDS[kind](blocks), (blocks,), {}, options)
        self.table: list[tuple[int, ...]] = []
        self.accesses: list[tuple[int, ...]] = []

    def add(self, name: str, pipe: Pipe, core: int = 0, **columns: int) -> int:
        """One instruction; its row."""
        values: dict[str, Any] = {"core": core, "pipe": pipe, "opcode": OPCODES.number(name), "origin": Origin.USER}
        self.table.append(tuple(int((values | columns).get(column, 0)) for column in INSTRUCTION_COLUMNS))
        return len(self.table) - 1

    def touch(self, role: Role, space: Space, address: int, nbytes: int, *loops: tuple[int, int]) -> None:
        """An access of the last instruction."""
        shape = intern(Footprint(nbytes, loops))
        self.accesses.append((len(self.table) - 1, int(role), NUMBER[space], address, shape))

    def load(self, at: int, nbytes: int, core: int = 0, to: int = 0, rows: int = 1, pitch: int = 0) -> int:
        """Bytes of GM, from `at` of the argument on, to UB."""
        row = self.add("copy_gm_to_ub", Pipe.MTE2, core, work=nbytes * rows)
        self.touch(Role.READ, Space.GM, GM + at, nbytes, *([(rows, pitch)] if rows > 1 else []))
        self.touch(Role.WRITE, Space.UB, to, nbytes * rows)
        return row

    def store(self, at: int, nbytes: int, core: int = 0, source: int = 0) -> int:
        """Bytes of UB to GM."""
        row = self.add("copy_ub_to_gm", Pipe.MTE3, core, work=nbytes)
        self.touch(Role.READ, Space.UB, source, nbytes)
        self.touch(Role.WRITE, Space.GM, GM + at, nbytes)
        return row

    def vector(self, target: int, sources: Sequence[int], count: int = 4096, core: int = 0, name: str = "vadd") -> int:
        """An instruction on `count` floats without gaps, in counter mode."""
        row = self.add(name, Pipe.V, core, b=1, c=count, work=count)
        for source in sources:
            self.touch(Role.READ, Space.UB, source, count * 4)
        self.touch(Role.WRITE, Space.UB, target, count * 4)
        return row

    def flag(self, event: HardEvent, number: int = 0, core: int = 0) -> tuple[int, int]:
        """A set_flag and its wait_flag, one after the other."""
        return self.set(event, number, core), self.wait(event, number, core)

    def set(self, event: HardEvent, number: int = 0, core: int = 0) -> int:
        """A set_flag."""
        return self.add("set_flag", event.source, core, a=event, b=number)

    def wait(self, event: HardEvent, number: int = 0, core: int = 0) -> int:
        """A wait_flag."""
        return self.add("wait_flag", event.target, core, a=event, b=number)

    def end(self) -> LaunchRows:
        """The launch, every core's kernel ended."""
        for core in range(len(self.launch.cores)):
            self.add("kernel_end", Pipe.S, core)
        return self.rows()

    def rows(self, whole: bool = True) -> LaunchRows:
        """The launch as it is."""
        table = np.array(self.table, np.int64).T.copy()
        access = np.array(self.accesses, np.int64).reshape(-1, len(ACCESS_COLUMNS)).T.copy()
        return LaunchRows(self.launch, table, access, BUFFERS, [], [Site("")], [], whole)
