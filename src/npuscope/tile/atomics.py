"""Atomic operations of a whole batch: program after program, lane after lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.tile.integers import UNSIGNED

Combine = Callable[[Any, Any], Any]


def _unsigned(function: Combine) -> Combine:
    def combine(old: np.ndarray, value: np.ndarray) -> np.ndarray:
        kind = UNSIGNED[old.dtype]
        result: np.ndarray = function(old.view(kind), value.view(kind)).view(old.dtype)
        return result

    return combine


def _exchange(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return value


OPERATIONS: dict[int, tuple[str, Combine]] = {
    1: ("atomic_and", np.bitwise_and),
    2: ("atomic_or", np.bitwise_or),
    3: ("atomic_xor", np.bitwise_xor),
    4: ("atomic_add", np.add),
    5: ("atomic_add", np.add),
    6: ("atomic_max", np.maximum),
    7: ("atomic_min", np.minimum),
    8: ("atomic_max", _unsigned(np.maximum)),
    9: ("atomic_min", _unsigned(np.minimum)),
    10: ("atomic_xchg", _exchange),
}
"""Name and function by Triton's number of a read-modify-write operation."""


def update(memory: np.ndarray, index: np.ndarray, values: np.ndarray, combine: Combine, wanted: bool) -> np.ndarray:
    """Combine `values` into `memory` at `index`, one after the other; returns what each found there if `wanted`.

    All are 1-D. Places that come up again are served in rounds, so that each sees what those before it left.
    """
    if not wanted and isinstance(combine, np.ufunc):
        combine.at(memory, index, values)
        return values
    old = np.empty_like(values)
    for turn in rounds(index):
        places = index[turn]
        old[turn] = memory[places]
        memory[places] = combine(old[turn], values[turn])
    return old


def exchange_if_equal(
    memory: np.ndarray, index: np.ndarray, expected: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Put `values` where `expected` is found, one after the other; returns what each found."""
    old = np.empty_like(values)
    for turn in rounds(index):
        places = index[turn]
        found = old[turn] = memory[places]
        memory[places] = np.where(found == expected[turn], values[turn], found)
    return old


def rounds(index: np.ndarray) -> list[np.ndarray]:
    """Positions in groups such that no place comes up twice in a group and each place's come in order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    begins = np.flatnonzero(first)
    turn = np.arange(index.size) - np.repeat(begins, np.diff(np.r_[begins, index.size]))
    if not turn.any():
        return [np.arange(index.size)] if index.size else []
    by_turn = np.argsort(turn, kind="stable")
    cuts = np.flatnonzero(np.diff(turn[by_turn])) + 1
    return [np.sort(order[part]) for part in np.split(by_turn, cuts)]
