"""Where ways part: each program ends up with what it would have alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from bench import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from values import PROGRAMS

from npuscope.tile.affine import Affine, dense
from npuscope.tile.control import Branch, Loop, Paths, Turns
from npuscope.tile.integers import add
from npuscope.tile.lanes import Apart
from npuscope.tile.machine import Machine

FEW = st.lists(st.integers(-2, 5), min_size=PROGRAMS, max_size=PROGRAMS)


def machine() -> Machine:
    return Bench(np.zeros(1, np.int32), grid=(PROGRAMS, 1, 1)).machine


def numbers(value: Any) -> list[int]:
    return np.broadcast_to(dense(value).reshape(-1), (PROGRAMS,)).tolist()


def one(value: int) -> Affine:
    return Affine(value, (), (), 32)


@settings(deadline=None)
@given(low=FEW, high=FEW, step=st.integers(1, 3), same=st.booleans())
def test_loops_of_different_lengths(low: list[int], high: list[int], step: int, same: bool) -> None:
    if same:
        low, high = [low[0]] * PROGRAMS, [high[0]] * PROGRAMS
    m, total, last = machine(), one(0), one(-9)
    loop = Loop(m, Affine(np.array(low), (), (), 32), Affine(np.array(high), (), (), 32), one(step))
    for index in loop:
        following = add(1, total, index)
        total, last = loop.carry(following, total), loop.carry(index, last)
    ranges = [range(a, b, step) for a, b in zip(low, high, strict=True)]
    assert numbers(total) == [sum(r) for r in ranges]
    assert numbers(last) == [r[-1] if r else -9 for r in ranges]
    assert m.active is None


@settings(deadline=None)
@given(values=FEW, limit=st.integers(-3, 6))
def test_loops_inside_branches(values: list[int], limit: int) -> None:
    m = machine()
    x = Affine(np.array(values), (), (), 32)
    branch = Branch(m, dense(x) > limit)
    first: Any = None
    if branch.holds():
        first = one(0)
        loop = Loop(m, one(0), x, one(1))
        for _ in loop:
            first = loop.carry(add(1, first, one(1)), first)
    second: Any = None
    if branch.fails():
        inner = Branch(m, dense(x) == limit)
        third: Any = None
        if inner.holds():
            third = one(100)
        fourth: Any = None
        if inner.fails():
            fourth = add(1, x, one(-50))
        inner.end()
        second = inner.merge(third, fourth)
    branch.end()
    assert numbers(branch.merge(first, second)) == [
        max(v, 0) if v > limit else 100 if v == limit else v - 50 for v in values
    ]
    assert m.active is None


@settings(deadline=None)
@given(values=FEW)
def test_loops_with_a_condition(values: list[int]) -> None:
    m = machine()
    x: Any = Affine(np.array(values), (), (), 32)
    count: Any = one(0)
    turns, seen = Turns(m), None
    while True:
        seen = turns.keep(x, seen)
        if not turns.go_on(dense(x) > 0):
            break
        x, count = turns.carry(add(1, x, one(-2)), x), turns.carry(add(1, count, one(1)), count)
    assert numbers(count) == [max((v + 1) // 2, 0) for v in values]
    assert numbers(seen) == [v if v <= 0 else -(v % 2) for v in values]
    assert m.active is None


@settings(deadline=None)
@given(values=FEW)
def test_blocks_that_jump_forward(values: list[int]) -> None:
    m = machine()
    x = np.array(values)
    paths, argument, result = Paths(m), None, None
    argument = paths.pass_on(one(7), argument, x > 1, True)
    paths.part(x > 1, 2, 1)
    if paths.enter(1):
        argument = paths.pass_on(one(8), argument, x > 0, True)
        result = paths.pass_on(one(-1), result) if (x > 0).all() else result
        paths.part(x > 0, 2, 3)
    if paths.enter(2):
        result = paths.pass_on(argument, result)
    if paths.enter(3):
        result = paths.pass_on(one(9), result)
    paths.end()
    assert numbers(result) == [7 if v > 1 else 8 if v == 1 else 9 for v in values]


def test_numbers_of_a_tile_go_their_own_ways() -> None:
    m = machine()
    m.active = np.array([True, False, True])

    def larger(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
        branch = Branch(m, a > b)
        first, second = None, None
        if branch.holds():
            first = a
        if branch.fails():
            second = b
        branch.end()
        return (dense(branch.merge(first, second)),)

    a, b = np.arange(6).reshape(3, 2), np.array([[3, 1]])
    (got,) = Apart(m, larger)(a, b)
    assert got.tolist() == np.maximum(a, b).tolist()
    assert m.count == PROGRAMS and m.active is not None
