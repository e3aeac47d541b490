"""Watches ranges of UB for kinds of access, as CheckLocalMemoryIA sets them. While none is set it costs nothing: it
stands between a core and its accesses only from the first to the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.npu.core import READ, WRITE, Core
from npuscope.npu.layout import Layout
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import INSTRUCTION_COLUMNS, Pipe, Space

Range = tuple[int, int, int]
"""First byte, one past the last, kinds of access: bit 2n for reads and 2n + 1 for writes of scalar, vector, MTE."""

SCALAR, VECTOR, MTE = 0, 2, 4
UNIT = {int(Pipe.S): SCALAR, int(Pipe.V): VECTOR}
"""Bit of a pipe's reads; pipes that are not here move data."""

PIPE_OF_LAST = INSTRUCTION_COLUMNS.index("pipe") - len(INSTRUCTION_COLUMNS)
"""Where the pipe of the last instruction stands in the recorder's list."""

METHODS = ("load", "store", "target", "note", "gather", "scatter")
"""What of a core makes accesses."""


class Watch:
    """The ranges of one core, by exception register."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.ranges: dict[int, Range] = {}

    def set(self, register: int, watched: Range | None) -> None:
        """Watch a range, or with None stop watching."""
        self.ranges.pop(register, None)
        if watched is not None:
            self.ranges[register] = watched
        own = self.core.__dict__
        for name in METHODS:
            own.pop(name, None)
            if self.ranges:
                own[name] = self._around(name, getattr(self.core, name))

    def _around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """A core's method that also compares what it accesses."""

        def watched(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            if name == "note":
                self.look(*arguments)
            else:
                self.look(READ if name in ("load", "gather") else WRITE, arguments[0], arguments[1])
            return result

        return watched

    def look(self, role: int, tensor: Tensor, where: Layout | np.ndarray) -> None:
        """Compare one access of the instruction that was begun last with the ranges."""
        if tensor.memory.space != Space.UB:
            return
        if isinstance(where, Layout):
            low, high = where.low, where.high
        elif where.size:
            low, high = int(where.min()), int(where.max()) + tensor.dtype.itemsize
        else:
            return
        low, high = tensor.address + low, tensor.address + high
        pipe = self.core.recorder.instructions[PIPE_OF_LAST]
        kind = UNIT.get(pipe, MTE) + (role != READ)
        for register, (start, end, kinds) in self.ranges.items():
            if kinds >> kind & 1 and low < end and start < high and low < high:
                self.core.fault(
                    "watched_access", register=register, address=max(low, start), pipe=Pipe(pipe).name,
                    role="read" if role == READ else "write",
                )
