"""Where the time of each step goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.communication import Communication
from npuscope.monitor.agent.trace.parsing.covered import Cover, common, covered, merged
from npuscope.monitor.agent.trace.parsing.model import OPERATOR, Model

Column = NDArray[Any]
HOST = -1
"""The device of a trace without a device: operators of the host count as computing."""


@dataclass(frozen=True)
class StepTimes:
    """One row a step and device; without steps, one row a device, with step -1. Times in ns."""

    device: Column
    step: Column
    length: Column
    computing: Column
    communication: Column
    overlapped: Column
    receiving: Column
    """Waiting for another rank's data, beyond computing."""
    preparing: Column
    """From the step's begin to the first computing or communication."""

    def __len__(self) -> int:
        return len(self.step)


def step_times(model: Model, transfers: Communication) -> StepTimes:
    """Of every step, on every device that did anything."""
    if len(model.steps):
        number, start, end = model.steps.number, model.steps.start, model.steps.end
    else:
        number = np.array([-1])
        start = np.array([int(model.metadata.get("start_ns", 0))])
        end = np.array([int(model.metadata.get("end_ns", 0))])
    devices = np.unique(model.slices.process[model.kernels]) if len(model.kernels) else np.array([HOST])
    parts = [_on(model, transfers, int(device), number, start, end) for device in devices]
    return StepTimes(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})


def _on(model: Model, transfers: Communication, device: int, number: Column, start: Column, end: Column) -> StepTimes:
    here = transfers.device == device
    talking = _cover(model, transfers.row[here])
    receiving = _cover(model, transfers.row[here & transfers.receives()])
    computing = _cover(model, _computing(model, device))
    if device == HOST:
        # An operator of the host that waits for a collective computes nothing meanwhile.
        computing = _without(computing, talking)
    both = common(computing, talking)
    busy = merged(np.concatenate([computing[0], talking[0]]), np.concatenate([computing[1], talking[1]]))
    return StepTimes(
        device=np.full(len(number), device),
        step=number,
        length=end - start,
        computing=covered(computing, start, end),
        communication=covered(talking, start, end),
        overlapped=covered(both, start, end),
        receiving=covered(_without(receiving, computing), start, end),
        preparing=_preparing(busy, start, end),
    )


def _computing(model: Model, device: int) -> Column:
    if device == HOST:
        return model.rows_of(OPERATOR)
    return model.kernels[~model.communicating & (model.slices.process[model.kernels] == device)]


def _cover(model: Model, rows: Column) -> Cover:
    return merged(model.slices.start[rows], model.slices.end[rows])


def _without(one: Cover, other: Cover) -> Cover:
    """What of one cover the other does not fill."""
    edges = np.unique(np.concatenate([*one, *other]))
    if len(edges) < 2:
        return one
    start, end = edges[:-1], edges[1:]
    keep = (covered(one, start, end) > 0) & (covered(other, start, end) == 0)
    return merged(start[keep], end[keep])


def _preparing(busy: Cover, start: Column, end: Column) -> Column:
    starts, ends = busy
    if not len(starts):
        return end - start
    row = np.searchsorted(ends, start, "right")
    first = np.where(row < len(starts), starts[np.minimum(row, len(starts) - 1)], end)
    return np.clip(first, start, end) - start
