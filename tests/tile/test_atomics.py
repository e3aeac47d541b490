"""Atomics of a whole batch are what one after the other would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuscope.tile.atomics import LONG, OPERATIONS, exchange_if_equal, rounds, update

AND, OR, XOR, ADD, FADD, MAX, MIN, UMAX, UMIN, XCHG = range(1, 11)
STEPS: dict[int, Callable[[Any, Any], Any]] = {
    AND: lambda a, b: a & b, OR: lambda a, b: a | b, XOR: lambda a, b: a ^ b, ADD: lambda a, b: a + b, FADD: lambda a, b: a + b, MAX: max, MIN: min,
    UMAX: lambda a, b: a if int(a) % 2**32 > int(b) % 2**32 else b, UMIN: lambda a, b: a if int(a) % 2**32 < int(b) % 2**32 else b, XCHG: lambda a, b: b,
}  # fmt: skip


def one_by_one(
    memory: np.ndarray, index: np.ndarray, values: np.ndarray, step: Callable[[Any, Any], Any]
) -> np.ndarray:
    old = np.empty_like(values)
    with np.errstate(over="ignore"):
        for k, (place, value) in enumerate(zip(index, values, strict=True)):
            old[k] = memory[place]
            memory[place] = step(memory[place], value)
    return old


@pytest.mark.parametrize("kind", [kind for kind in STEPS if kind != FADD])
@pytest.mark.parametrize("wanted", [True, False])
@settings(max_examples=25, deadline=None)
@given(index=st.lists(st.integers(0, 6), max_size=60), seed=st.integers(0, 99))
def test_integers(kind: int, wanted: bool, index: list[int], seed: int) -> None:
    check(kind, wanted, np.array(index, np.int64), seed, np.dtype(np.int32))


@pytest.mark.parametrize("kind", [FADD, XCHG, MAX])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("wanted", [True, False])
def test_floats(kind: int, dtype: Any, wanted: bool) -> None:
    check(kind, wanted, np.random.default_rng(1).integers(0, 9, 300), 5, np.dtype(dtype))


@pytest.mark.parametrize("kind", STEPS)
def test_places_that_come_up_often_and_seldom(kind: int) -> None:
    rng = np.random.default_rng(3)
    index = np.concatenate([np.zeros(3 * LONG, np.int64), rng.integers(1, 50, 100), np.full(LONG + 1, 60)])
    rng.shuffle(index)
    check(kind, True, index, 7, np.dtype(np.float64 if kind == FADD else np.int32))


def check(kind: int, wanted: bool, index: np.ndarray, seed: int, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(seed)
    memory, values = rng.integers(-99, 99, 64).astype(dtype), rng.integers(-99, 99, index.size).astype(dtype)
    want_memory = memory.copy()
    want = one_by_one(want_memory, index, values, STEPS[kind])
    got = update(memory, index, values.copy(), OPERATIONS[kind], wanted)
    np.testing.assert_array_equal(memory, want_memory)
    if wanted:
        np.testing.assert_array_equal(got, want)


@settings(max_examples=50, deadline=None)
@given(index=st.lists(st.integers(0, 4), max_size=40), seed=st.integers(0, 99))
def test_compare_and_swap(index: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = np.array(index, np.int64)
    memory = rng.integers(0, 3, 8).astype(np.int32)
    expected, values = (rng.integers(0, 3, places.size).astype(np.int32) for _ in range(2))
    want_memory, want = memory.copy(), []
    for place, old, new in zip(places, expected, values, strict=True):
        want.append(want_memory[place])
        if want_memory[place] == old:
            want_memory[place] = new
    assert exchange_if_equal(memory, places, expected, values).tolist() == want
    np.testing.assert_array_equal(memory, want_memory)


@given(index=st.lists(st.integers(0, 5), max_size=30))
def test_rounds_hold_every_position_once_and_places_in_order(index: list[int]) -> None:
    places = np.array(index, np.int64)
    groups = rounds(places)
    assert sorted(position for group in groups for position in group.tolist()) == list(range(len(index)))
    for group in groups:
        assert len(set(places[group].tolist())) == group.size
    for place in set(index):
        order = [position for group in groups for position in group.tolist() if index[position] == place]
        assert order == sorted(order)
