"""What kernels print: one line for each program and value, in the form of Triton's own interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npuscope.tile.affine import dense
from npuscope.tile.integers import UNSIGNED
from npuscope.tile.machine import Machine
from npuscope.tile.overflow import plain
from npuscope.tile.pointer import Pointer
from npuscope.tile.shapes import Shape, whole


class Print:
    """One print statement. `kinds` tells of each value its tile's shape and whether its integers have a sign."""

    def __init__(self, prefix: str, hexadecimal: bool, kinds: Sequence[tuple[Shape, int]]) -> None:
        self._prefix = prefix
        self._hexadecimal = hexadecimal
        self._kinds = kinds

    def __call__(self, machine: Machine, *values: Any) -> None:
        """Let every program that comes here say its line."""
        arrays = [_shown(value, *kind) for value, kind in zip(values, self._kinds, strict=True)]
        chosen = range(machine.count) if machine.active is None else np.flatnonzero(machine.active)
        for program in chosen:
            place = machine.place(int(program))
            start = f"({place[0]}, {place[1]}, {place[2]})" + (f" {self._prefix}" if self._prefix else "")
            for array in arrays:
                row = array[int(program) if array.shape[0] > 1 else 0]
                machine.say(int(program), f"{start} {self._text(row if row.ndim else row[None])}")

    def _text(self, row: np.ndarray) -> str:
        if not self._hexadecimal:
            return str(row)
        return np.array2string(row, formatter={"all": _hexadecimal})


def _shown(value: Any, shape: Shape, signed: int) -> np.ndarray:
    if isinstance(value, Pointer):
        address = value.address if isinstance(value.address, np.ndarray) else value.address.wide()
        return plain(whole(shape, address)).view(np.uint64)
    array = plain(whole(shape, dense(value)))
    if not signed and array.dtype in UNSIGNED:
        array = np.ascontiguousarray(array).view(UNSIGNED[array.dtype])
    return array


def _hexadecimal(number: Any) -> str:
    if isinstance(number, np.integer | np.bool_):
        return f"0x{int(number):0{number.dtype.itemsize * 2}x}"
    return float(number).hex()
