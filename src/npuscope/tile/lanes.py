"""Functions of single numbers, called with whole tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.tile.machine import Machine
from npuscope.tile.shapes import Shape, whole

Function = Callable[..., tuple[np.ndarray, ...]]


class Apart:
    """A function in which ways part: every number is a program of its own while it runs."""

    def __init__(self, machine: Machine, function: Function) -> None:
        self._machine = machine
        self._function = function

    def __call__(self, *values: np.ndarray) -> tuple[np.ndarray, ...]:
        arrays = np.broadcast_arrays(*values)
        shape, size = arrays[0].shape, arrays[0].size
        machine = self._machine
        count, active = machine.count, machine.active
        machine.count, machine.active = size, None
        try:
            results = self._function(*(array.reshape(-1) for array in arrays))
        finally:
            machine.count, machine.active = count, active
        return tuple(np.broadcast_to(result, (size,)).reshape(shape) for result in results)


def each(function: Function, shape: Shape, pack: int, *values: Any) -> Any:
    """The function of every element (of every `pack` neighbours) of tiles of `shape`."""
    arrays = np.broadcast_arrays(*(whole(shape, value) for value in values))
    programs = arrays[0].shape[0]
    flat = [array.reshape(programs, -1) for array in arrays]
    found = function(*(array[:, place::pack] for array in flat for place in range(pack)))
    groups = flat[0].shape[1] // pack
    results = []
    for begin in range(0, len(found), pack):
        parts = [np.broadcast_to(part, (programs, groups)) for part in found[begin : begin + pack]]
        results.append(np.stack(parts, axis=-1).reshape(programs, *shape))
    return tuple(results) if len(results) > 1 else results[0]
