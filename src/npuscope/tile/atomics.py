"""Atomic operations of a whole batch: program after program, lane after lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.tile.affine import SIGNED
from npuscope.tile.integers import UNSIGNED


@dataclass(frozen=True, slots=True)
class Operation:
    """A read-modify-write: its name in the trace, its function (None puts the new value there), and whether integers
    are taken without their sign."""

    name: str
    function: np.ufunc | None
    unsigned: bool = False


OPERATIONS: dict[int, Operation] = {
    1: Operation("atomic_and", np.bitwise_and),
    2: Operation("atomic_or", np.bitwise_or),
    3: Operation("atomic_xor", np.bitwise_xor),
    4: Operation("atomic_add", np.add),
    5: Operation("atomic_add", np.add),
    6: Operation("atomic_max", np.maximum),
    7: Operation("atomic_min", np.minimum),
    8: Operation("atomic_max", np.maximum, True),
    9: Operation("atomic_min", np.minimum, True),
    10: Operation("atomic_xchg", None),
}
"""By Triton's number of a read-modify-write operation."""

LONG = 64
"""A place that comes up more often than this is served on its own."""


def update(memory: np.ndarray, index: np.ndarray, values: np.ndarray, operation: Operation, wanted: bool) -> np.ndarray:
    """Combine `values` into `memory` at `index`, one after the other; returns what each found there if `wanted`.

    All are 1-D.
    """
    if operation.unsigned:
        kind = UNSIGNED[memory.dtype]
        memory, values = memory.view(kind), values.view(kind)
    function = operation.function
    if function is None:
        old = _exchanged(memory, index, values)
    elif wanted:
        old = _combined(memory, index, values, function)
    else:
        function.at(memory, index, values)
        old = values
    return old.view(SIGNED[8 * old.dtype.itemsize]) if operation.unsigned else old


def _exchanged(memory: np.ndarray, index: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Each finds what the one before it at the same place left."""
    order, begins, _ = by_place(index)
    old = np.empty_like(values)
    found = np.empty_like(values)
    found[1:] = values[order][:-1]
    found[begins] = memory[index[order[begins]]]
    old[order] = found
    memory[index] = values  # the last one stays
    return old


def _combined(memory: np.ndarray, index: np.ndarray, values: np.ndarray, function: np.ufunc) -> np.ndarray:
    """Places that come up often are served one at a time, the others together in rounds."""
    old = np.empty_like(values)
    order, begins, counts = by_place(index)
    often = counts > LONG
    for begin, count in zip(begins[often], counts[often], strict=True):
        turns = order[begin : begin + count]
        place = index[turns[0]]
        row = np.concatenate([memory[place : place + 1], values[turns]])
        row = function.accumulate(row, dtype=row.dtype)
        old[turns], memory[place] = row[:-1], row[-1]
    rest = order[~np.repeat(often, counts)]
    rest.sort()
    for turn in rounds(index[rest]):
        chosen = rest[turn]
        places = index[chosen]
        old[chosen] = memory[places]
        memory[places] = function(old[chosen], values[chosen])
    return old


def by_place(index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions ordered by place and then by themselves; where in that order each place begins; how often it comes."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    begins = np.flatnonzero(np.r_[index.size > 0, ordered[1:] != ordered[:-1]][: index.size])
    return order, begins, np.diff(np.r_[begins, index.size])


def exchange_if_equal(memory: np.ndarray, index: np.ndarray, expected: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Put `values` where `expected` is found, one after the other; returns what each found."""
    old = np.empty_like(values)
    for turn in rounds(index):
        places = index[turn]
        found = old[turn] = memory[places]
        memory[places] = np.where(found == expected[turn], values[turn], found)
    return old


def rounds(index: np.ndarray) -> list[np.ndarray]:
    """Positions in groups such that no place comes up twice in a group and each place's come in order."""
    order, begins, counts = by_place(index)
    turn = np.arange(index.size) - np.repeat(begins, counts)
    if not turn.any():
        return [np.arange(index.size)] if index.size else []
    by_turn = np.argsort(turn, kind="stable")
    cuts = np.flatnonzero(np.diff(turn[by_turn])) + 1
    return [np.sort(order[part]) for part in np.split(by_turn, cuts)]
