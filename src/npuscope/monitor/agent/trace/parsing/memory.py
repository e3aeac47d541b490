"""Memory: who took it, when it was given back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.model import OPERATOR, Model
from npuscope.monitor.agent.trace.parsing.nesting import nest

Column = NDArray[Any]
NONE = -1


@dataclass(frozen=True)
class Blocks:
    """Blocks of memory by the time they were taken; rows of `Trace.memory`."""

    taken: Column
    freed: Column
    """-1 when that was not recorded."""
    name: Column
    """Number of the name of the operator that took it; 0 when none did."""

    def __len__(self) -> int:
        return len(self.taken)


def blocks(model: Model) -> Blocks:
    """All blocks that were taken during the trace."""
    memory = model.trace.memory
    # One block after the other at each address of a device; a stable order keeps the file's at one moment.
    order = np.lexsort((memory.time, memory.address, memory.device, memory.device_type))
    taken = memory.bytes[order] > 0
    following = np.append(order[1:], NONE)
    same = np.append(
        (memory.address[order[1:]] == memory.address[order[:-1]])
        & (memory.device[order[1:]] == memory.device[order[:-1]])
        & (memory.device_type[order[1:]] == memory.device_type[order[:-1]])
        & (memory.bytes[order[1:]] < 0),
        False,
    )[: len(order)]
    rows, freed = order[taken], np.where(same, following[: len(order)], NONE)[taken]
    by_time = np.argsort(memory.time[rows], kind="stable")
    rows, freed = rows[by_time], freed[by_time]
    return Blocks(rows, freed, _takers(model, rows))


def _takers(model: Model, rows: Column) -> Column:
    """The names of the innermost operators around moments."""
    slices, memory = model.slices, model.trace.memory
    operators = model.host[np.isin(model.host, model.rows_of(OPERATOR))]
    times = memory.time[rows]
    nesting = nest(
        np.concatenate([slices.thread[operators], memory.thread[rows]]),
        np.concatenate([slices.start[operators], times]),
        np.concatenate([slices.end[operators], times]),
    )
    # Of several moments at the same time, each may lie in the one before.
    parent = nesting.parent
    found = parent[len(operators) :]
    while (moments := found >= len(operators)).any():
        found = np.where(moments, parent[found], found)
    if not len(operators):
        return np.zeros(len(rows), np.int64)
    return np.where(found >= 0, slices.name[operators[found]], 0)
