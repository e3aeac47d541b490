"""A machine with memory of its own, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.npu.memory import borrow
from npuscope.tile.access import Accesses
from npuscope.tile.machine import Machine
from npuscope.tile.storage import Argument, Storage
from npuscope.trace.recorder import Batch, Recorder
from npuscope.trace.schema import Buffer, Fault, Launch, Programs, Space


class Bench:
    """Programs of one launch over one numpy array, a view of which is the argument."""

    def __init__(
        self, data: np.ndarray, view: np.ndarray | None = None, grid: tuple[int, int, int] = (3, 1, 1), name: str = "x"
    ) -> None:
        shown = data if view is None else view
        self.batches: list[Batch] = []
        self.recorder = Recorder(consumers=[self.batches.append])
        self.recorder.begin(Launch(0, "kernel", "", Programs(grid), grid, {}, {}))
        storage = Storage(data.ctypes.data, data.nbytes, borrow(data.ctypes.data, data.nbytes, True, data), data)
        strides = tuple(step // shown.itemsize for step in shown.strides)
        self.argument = Argument(name, storage, shown.ctypes.data, shown.dtype, shown.shape, strides)
        self.argument.number = self.recorder.add_buffer(
            Buffer(Space.GM, -1, self.argument.low, self.argument.high - self.argument.low, "argument", name)
        )
        self.machine = Machine(grid, [self.argument], Accesses(self.recorder, frozenset([id(storage)])))
        self.machine.begin(0, grid[0] * grid[1] * grid[2])

    def faults(self) -> list[Fault]:
        """What was noted so far."""
        self.recorder.end()
        return [fault for batch in self.batches for fault in batch.faults]

    def rows(self) -> Any:
        """The accesses noted so far, one column each."""
        self.recorder.end()
        return np.concatenate([batch.access for batch in self.batches], axis=1)
