"""The Python functions in which operators were called."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.model import FUNCTION, OPERATOR, Model
from npuscope.monitor.agent.trace.parsing.nesting import nest

Column = NDArray[Any]
DEEPEST = 512
"""Frames of a stack that are told."""


class Stacks:
    """Call stacks, each told once: of every operator the number of its stack, -1 when there is none."""

    def __init__(self, model: Model) -> None:
        functions = model.rows_of(FUNCTION)
        operators = model.rows_of(OPERATOR)
        rows = np.concatenate([functions, operators])
        slices = model.slices
        parent = nest(slices.thread[rows], slices.start[rows], slices.end[rows]).parent if len(functions) else None
        self._names = slices.name[functions]
        self._texts = model.texts
        self._above = np.full(len(functions), -1, np.int64)
        self.of_row = np.full(len(slices), -1, np.int64)
        """By row of the slices."""
        if parent is not None:
            inside = _functions_around(parent, len(functions))
            self._above = inside[: len(functions)]
            self.of_row[operators] = inside[len(functions) :]
        self._told: dict[int, str] = {-1: ""}

    def __bool__(self) -> bool:
        return bool(len(self._names))

    def frames(self, number: int) -> list[int]:
        """The names (by number) of a stack's functions, the innermost first."""
        found: list[int] = []
        while number >= 0 and len(found) < DEEPEST:
            found.append(int(self._names[number]))
            number = int(self._above[number])
        return found

    def text(self, number: int) -> str:
        """A stack in one text, the innermost function first, as the vendor writes it."""
        told = self._told.get(number)
        if told is None:
            told = self._told[number] = ";\n".join(self._texts[name] for name in self.frames(number))
        return told


def _functions_around(parent: Column, functions: int) -> Column:
    """Of each row, the innermost function around it: operators between are passed over."""
    found = parent.copy()
    while (between := found >= functions).any():
        found = np.where(between, parent[found], found)
    return found
