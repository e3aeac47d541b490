"""A launch that is ready to run: its grid, the memory behind it, and the lowered kernel with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.tile.machine import Machine
from npuscope.tile.storage import Argument


@dataclass(frozen=True, slots=True)
class Ready:
    """`entry` is called ``entry(machine, *bound)``; what it gives is gone through step by step where it `yields`."""

    grid: tuple[int, int, int]
    arguments: Sequence[Argument]
    entry: Callable[..., Any]
    bound: Sequence[Any]
    yields: bool

    def run_alone(self, machine: Machine, program: int, end: float) -> None:
        """Run one program to its end. Raises Overdue when it is not there by `end`, on the clock of time.monotonic."""
        machine.deadline = end
        machine.begin(program, 1)
        with np.errstate(all="ignore"):
            steps = self.entry(machine, *self.bound)
            for _ in steps if self.yields else ():
                machine.look_at_clock()
