"""The operands of each instruction as text, made when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from npuscope.npu.timing.detail_keys import COLUMNS, SHAPE, operand_keys
from npuscope.npu.timing.detail_text import operand_text
from npuscope.npu.timing.operands import Operands
from npuscope.trace.rows import LaunchRows


class Details(Sequence[str]):
    """Text of the operands of slice number i, which is row ``row[i]`` of the trace."""

    def __init__(self, rows: LaunchRows, operands: Operands, row: np.ndarray) -> None:
        self._rows = rows
        self._operands = operands
        self._row = row
        self._columns = [rows.column(name) for name in COLUMNS]
        self._facts = [operands.space, operands.writes, operands.address, *(operands.shape[part] for part in SHAPE)]

    def __len__(self) -> int:
        return int(self._row.size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row = int(self._row[range(len(self))[int(index)]])
        values = (int(column[row]) for column in self._columns)
        between = range(*self._operands.first[row : row + 2].tolist())
        opcode, pipe, a, b, c, d, work = values
        accesses: list[Any] = [tuple(int(fact[access]) for fact in self._facts) for access in between]
        return operand_text(opcode, pipe, a, b, c, d, work, accesses)

    def distinct(self, which: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The texts that differ among those of slices `which`, and (those,) int64 which of them each has."""
        texts, place = self._all
        numbers, index = np.unique(place[which], return_inverse=True)
        return [texts[number] for number in numbers.tolist()], index

    @cached_property
    def _all(self) -> tuple[list[str], np.ndarray]:
        """The texts that differ, and which of them each slice has; kept, because several files want them."""
        keys = operand_keys(self._rows, self._operands, self._row)
        _, examples, place = np.unique(keys, return_index=True, return_inverse=True)
        return self._texts(self._row[examples]), place

    def _texts(self, rows: np.ndarray) -> list[str]:
        """The texts of some rows of the trace; columns become plain numbers all at once."""
        columns = [column[rows].tolist() for column in self._columns]
        first = self._operands.first[rows]
        counts = self._operands.first[rows + 1] - first
        bounds = np.concatenate(([0], np.cumsum(counts)))
        place = np.repeat(first - bounds[:-1], counts) + np.arange(bounds[-1])
        accesses: list[Any] = list(zip(*(fact[place].tolist() for fact in self._facts), strict=True))
        limits = bounds.tolist()
        return [
            operand_text(opcode, pipe, a, b, c, d, work, accesses[begin:end])
            for opcode, pipe, a, b, c, d, work, begin, end in zip(*columns, limits[:-1], limits[1:], strict=True)
        ]
