"""One access as the engine's tables keep it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.sanitizer.order.events import PIPES


@dataclass(frozen=True, slots=True)
class Side:
    """One access as the tables keep it: who made it, and columns of its rows."""

    role: int
    core: int
    pipe: int  # a trace pipe
    site: int
    opcode: int
    address: int
    footprint: int
    buffer: int
    row: int


def side_of(numbers: np.ndarray) -> Side:
    """A role, an agent and a detail, as a side."""
    role, agent, *detail = (int(number) for number in numbers)
    core, pipe = divmod(agent, len(PIPES))
    return Side(role, core, int(PIPES[pipe]), *detail)
