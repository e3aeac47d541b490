"""The first NaN of a launch: the first operation whose result holds one while its inputs hold none."""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.tile.affine import Affine
from npuscope.tile.pointer import Pointer


class NanSearch:
    """Asked after every operation with a float result, until one is found. `loads` says whether a NaN that comes from
    memory counts."""

    def __init__(self, loads: bool = True) -> None:
        self.found = False
        self._loads = loads

    def look(
        self, inputs: tuple[Any, ...], result: np.ndarray, active: np.ndarray | None
    ) -> tuple[np.ndarray, dict[str, Any]] | None:
        """The lanes of the result that hold a first NaN, and what is known of it."""
        lanes = np.isnan(result)
        if active is not None:
            lanes = lanes & active.reshape((-1,) + (1,) * (lanes.ndim - 1))
        if not lanes.any():
            return None
        for value in inputs:
            if _is_float(value):
                before = np.isnan(value).reshape(value.shape[0], -1).any(axis=1)
                lanes = lanes & ~before.reshape((-1,) + (1,) * (lanes.ndim - 1))
        pointer = next((value for value in inputs if isinstance(value, Pointer)), None)
        if not lanes.any() or (pointer is not None and not self._loads):
            return None
        self.found = True
        lane = tuple(int(place[0]) for place in np.nonzero(lanes))
        return lanes, _loaded(pointer, lane) if pointer is not None else _made(inputs, lane)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "iub"


def _loaded(pointer: Pointer, lane: tuple[int, ...]) -> dict[str, Any]:
    """Where in memory it was."""
    if pointer.argument is None:
        return {}
    address = pointer.address.wide() if isinstance(pointer.address, Affine) else pointer.address
    where = int(address[_place(address, lane)])
    return {
        "argument": pointer.argument.name, "buffer": pointer.argument.number,
        "element": pointer.argument.element(where),
    }  # fmt: skip


def _made(inputs: tuple[Any, ...], lane: tuple[int, ...]) -> dict[str, Any]:
    """What it was made of, where every input has a number for the lane."""
    values = [value for value in inputs if _is_float(value)]
    if any(value.ndim != len(lane) for value in values):
        return {}
    try:
        return {"values": [float(value[_place(value, lane)]) for value in values]}
    except IndexError:
        return {}


def _place(array: np.ndarray, lane: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(0 if count == 1 else index for index, count in zip(lane, array.shape, strict=True))
