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
from npuscope.trace.timeline import UNKNOWN, DetailParts
from npuscope.trace.values import distinct

NONE = -1
STAND_IN = 0x5E1F_0DD5_EA7B_0A75
"""Stands in a text for the address in GM: no address is that high, and no other operand has all its digits."""


class Details(Sequence[str]):
    """Text of the operands of slice number i, which is row ``row[i]`` of the trace."""

    def __init__(self, rows: LaunchRows, operands: Operands, row: np.ndarray) -> None:
        self._rows = rows
        self._operands = operands
        self._row = row
        self._columns = [rows.column(name) for name in COLUMNS]

    def __len__(self) -> int:
        return int(self._row.size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row = int(self._row[range(len(self))[int(index)]])
        values = (int(column[row]) for column in self._columns)
        between = range(*self._operands.first[row : row + 2].tolist())
        opcode, pipe, a, b, c, d, work = values
        accesses: list[Any] = [self._access(access) for access in between]
        return operand_text(opcode, pipe, a, b, c, d, work, accesses)

    def _access(self, access: int) -> tuple[int, ...]:
        """What the text says of one access (detail_text.Access)."""
        operands, shape = self._operands, self._operands.shape.one(access)
        facts = (operands.space[access], operands.writes[access], operands.address[access], *shape[list(SHAPE)])
        return tuple(map(int, facts))

    def parts(self, which: np.ndarray) -> DetailParts:
        """As `trace.timeline.detail_parts`: the address in GM is the number."""
        whole = self._parts
        place = whole.which[which]
        used = np.zeros(len(whole.heads), bool)
        used[place] = True
        kept = np.flatnonzero(used).tolist()
        heads, tails = ([texts[number] for number in kept] for texts in (whole.heads, whole.tails))
        return DetailParts(heads, tails, (np.cumsum(used) - 1)[place], whole.number[which])

    @cached_property
    def _parts(self) -> DetailParts:
        """The texts of all slices; kept, because several files want them."""
        operands = self._operands
        first = operands.per_row(operands.gm, np.arange(operands.row.size), NONE)
        left_out = first[first != NONE]
        address = operands.address.copy()
        address[left_out] = STAND_IN
        keys = operand_keys(self._rows, operands, self._row, address)
        examples, place = distinct(keys)
        texts = [text.partition(f"{STAND_IN:x}") for text in self._texts(self._row[examples], address)]
        shown = np.array([bool(found) for _, found, _ in texts], bool)
        mine = first[self._row]
        number = np.where(shown[place] & (mine != NONE), operands.address[mine], UNKNOWN) if address.size else first
        return DetailParts([head for head, _, _ in texts], [tail for _, _, tail in texts], place, number)

    def _texts(self, rows: np.ndarray, address: np.ndarray) -> list[str]:
        """The texts of some rows of the trace with other addresses, (accesses,); columns become plain numbers all at
        once."""
        columns = [column[rows].tolist() for column in self._columns]
        first = self._operands.first[rows]
        counts = self._operands.first[rows + 1] - first
        bounds = np.concatenate(([0], np.cumsum(counts)))
        place = np.repeat(first - bounds[:-1], counts) + np.arange(bounds[-1])
        operands, shape = self._operands, self._operands.shape.of(place)
        facts = (operands.space[place], operands.writes[place], address[place], *(shape[part] for part in SHAPE))
        accesses: list[Any] = list(zip(*(fact.tolist() for fact in facts), strict=True))
        limits = bounds.tolist()
        return [
            operand_text(opcode, pipe, a, b, c, d, work, accesses[begin:end])
            for opcode, pipe, a, b, c, d, work, begin, end in zip(*columns, limits[:-1], limits[1:], strict=True)
        ]
