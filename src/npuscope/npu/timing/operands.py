"""The accesses of a launch, row by row: which memories an instruction reads and writes, and how much of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npuscope.npu.timing.shapes import TOTAL, Shapes, shapes_of
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import Role, Space

NOWHERE = -1
SIZES = {"int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "int4": 1, "float16": 2,
         "bfloat16": 2, "int16": 2, "uint16": 2, "float32": 4, "int32": 4, "uint32": 4}  # fmt: skip


@dataclass(frozen=True)
class Operands:
    """Columns over accesses, sorted by row: `row`, `space`, `writes` (bool), `address`, `shape`, `buffer`,
    `footprint`."""

    rows: int
    row: np.ndarray
    space: np.ndarray
    writes: np.ndarray
    address: np.ndarray
    footprint: np.ndarray
    buffer: np.ndarray
    shape: Shapes
    dtypes: list[str]

    @cached_property
    def first(self) -> np.ndarray:
        """(rows + 1,): where each row's accesses begin."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.row, minlength=self.rows))))

    def per_row(self, chosen: np.ndarray, values: np.ndarray, empty: int = 0) -> np.ndarray:
        """(rows,): the first of `values` among the `chosen` accesses of each row, `empty` where there is none."""
        found = np.full(self.rows, empty, np.int64)
        place = np.flatnonzero(chosen)[::-1]
        found[self.row[place]] = values[place]
        return found

    def total(self, chosen: np.ndarray) -> np.ndarray:
        """(rows,): bytes of the `chosen` accesses of each row."""
        weights = self.shape[TOTAL] * chosen
        return np.bincount(self.row, weights, minlength=self.rows).astype(np.int64)

    def largest(self, chosen: np.ndarray) -> np.ndarray:
        """(rows,): bytes of the largest `chosen` access of each row."""
        found = np.zeros(self.rows, np.int64)
        place = np.flatnonzero(chosen)
        np.maximum.at(found, self.row[place], self.shape.of(place)[TOTAL])
        return found

    @cached_property
    def gm(self) -> np.ndarray:
        """Which accesses are to GM."""
        return self.space == Space.GM

    @cached_property
    def local(self) -> np.ndarray:
        """Which accesses are to a memory of the core."""
        return self.space != Space.GM

    @cached_property
    def source(self) -> np.ndarray:
        """(rows,): the memory of the first read, NOWHERE without one."""
        return self.per_row(~self.writes, self.space, NOWHERE)

    @cached_property
    def target(self) -> np.ndarray:
        """(rows,): the memory of the first write, NOWHERE without one."""
        return self.per_row(self.writes, self.space, NOWHERE)

    @cached_property
    def dtype(self) -> np.ndarray:
        """(rows,): number in `dtypes` of the element type of the row's first access, NOWHERE without one."""
        return self.per_row(np.ones(self.row.size, bool), self.kind, NOWHERE)

    @cached_property
    def kind(self) -> np.ndarray:
        """(accesses,): number in `dtypes`."""
        return self._kinds[self.buffer]

    _kinds: np.ndarray = None  # type: ignore[assignment]  # by buffer


def operands_of(rows: LaunchRows) -> Operands:
    """The accesses of a launch as columns."""
    table = rows.access
    row = rows.access_column("instruction")
    if row.size and (np.diff(row) < 0).any():
        table = table[:, np.argsort(row, kind="stable")]
    row, role, buffer, address, footprint = table
    spoilt = role == Role.SPOIL
    if spoilt.any():
        row, role, buffer, address, footprint = table[:, ~spoilt]
    names = [one.dtype for one in rows.buffers]
    dtypes = list(dict.fromkeys(names))
    number = {name: index for index, name in enumerate(dtypes)}
    spaces = np.array([int(one.space) for one in rows.buffers] or [0], np.int64)
    return Operands(
        rows.instruction.shape[1], row, spaces[buffer], role != Role.READ, address, footprint, buffer,
        shapes_of(footprint, rows.explicit), dtypes,
        np.array([number[name] for name in names] or [0], np.int64),
    )  # fmt: skip
