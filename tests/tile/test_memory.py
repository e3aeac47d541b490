"""Loads and stores of whole tiles against one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from values import PROGRAMS, boxes, spelled_out

from npuscope.tile.affine import Affine
from npuscope.tile.box import Box
from npuscope.tile.pointer import Pointer, advance

SIZE = 400
DTYPE = np.dtype(np.int32)


@st.composite
def tiles(draw: st.DrawFn) -> tuple[tuple[int, ...], Affine, Any, np.ndarray | None]:
    """A shape, element offsets that lie in memory, a mask and who takes part."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=0, max_size=3)))
    strides = tuple(draw(st.integers(-20, 20)) for _ in shape)
    low = sum(stride * (count - 1) for stride, count in zip(strides, shape, strict=True) if stride < 0)
    high = sum(stride * (count - 1) for stride, count in zip(strides, shape, strict=True) if stride > 0)
    bases = st.integers(-low, SIZE - 1 - high)
    base: Any = (
        draw(bases) if draw(st.booleans()) else np.array(draw(st.lists(bases, min_size=PROGRAMS, max_size=PROGRAMS)))
    )
    mask: Any = None
    if draw(st.booleans()):
        mask = draw(boxes(shape)) if shape else np.array([draw(st.booleans())])
        if draw(st.booleans()) and isinstance(mask, Box):
            mask = mask.dense()
    active = None
    if draw(st.booleans()):
        active = np.array(draw(st.lists(st.booleans(), min_size=PROGRAMS, max_size=PROGRAMS)))
    return shape, Affine(base, strides, shape, 32), mask, active


def spread(shape: tuple[int, ...], mask: Any, active: np.ndarray | None) -> np.ndarray:
    """Which lanes take part, all of them spelled out."""
    lanes = np.ones((PROGRAMS, *shape), np.bool_) if mask is None else spelled_out(mask, shape).copy()
    if active is not None:
        lanes &= active.reshape(-1, *(1 for _ in shape))
    return lanes


@settings(max_examples=80, deadline=None)
@given(tile=tiles(), other=st.none() | st.integers(-5, 5))
def test_loads(tile: Any, other: int | None) -> None:
    shape, offsets, mask, active = tile
    data = np.arange(SIZE, dtype=DTYPE) * 7
    bench = Bench(data)
    bench.machine.active = active
    pointer = advance(4, Pointer(bench.argument, Affine(bench.argument.address, (0,) * len(shape), shape, 64)), offsets)
    filler = None if other is None else Affine(other, (0,) * len(shape), shape, 32)
    got = spelled_out(bench.machine.load(1, DTYPE, shape, False, pointer, mask, filler), shape)
    lanes = spread(shape, mask, active)
    want = np.where(lanes, data[spelled_out(offsets, shape)], 0 if other is None else other)
    seen = np.broadcast_to(
        active if active is not None else True, (PROGRAMS,)
    )  # what the others get is nobody's business
    np.testing.assert_array_equal(got[seen], want[seen])
    assert bench.faults() == []


@settings(max_examples=80, deadline=None)
@given(tile=tiles())
def test_stores(tile: Any) -> None:
    shape, offsets, mask, active = tile
    data = np.zeros(SIZE, DTYPE)
    bench = Bench(data)
    bench.machine.active = active
    pointer = advance(4, Pointer(bench.argument, Affine(bench.argument.address, (0,) * len(shape), shape, 64)), offsets)
    place, lanes = spelled_out(offsets, shape), spread(shape, mask, active)
    bench.machine.store(1, DTYPE, shape, pointer, place.astype(DTYPE) + 1000, mask)
    want = np.zeros(SIZE, DTYPE)
    want[place[lanes]] = place[lanes] + 1000
    np.testing.assert_array_equal(data, want)
    assert bench.faults() == []


@settings(max_examples=100, deadline=None)
@given(rows=st.integers(1, 6), step=st.integers(5, 30), first=st.integers(0, 20))
def test_the_gaps_of_a_view_are_outside(rows: int, step: int, first: int) -> None:
    data = np.arange(SIZE, dtype=DTYPE)
    view = np.lib.stride_tricks.as_strided(data[first:], (rows, 4), (step * 4, 4))
    bench = Bench(data, view)
    count = rows * step
    pointer = advance(
        4, Pointer(bench.argument, Affine(bench.argument.address, (0,), (count,), 64)), Affine(0, (1,), (count,), 32)
    )
    got = spelled_out(bench.machine.load(1, DTYPE, (count,), False, pointer, None, None), (count,))[0]
    inside = np.arange(count) % step < 4
    there = data[first : first + count]  # as a device reads it; nothing lies past the storage
    np.testing.assert_array_equal(got, np.pad(there, (0, count - there.size)))
    outside = [fault for fault in bench.faults() if fault.code == "tile_outside"]
    assert bool(outside) == (not inside.all())
    if outside:
        assert outside[0].facts["elements"] == int((~inside).sum()) and outside[0].facts["first"] == 4


def test_lanes_outside_are_named_and_reach_what_lies_in_the_storage() -> None:
    data = np.zeros(8, DTYPE)
    around = np.full(24, 9, DTYPE)
    around[8:16] = data
    bench = Bench(around, around[8:16])
    pointer = advance(
        4,
        Pointer(bench.argument, Affine(bench.argument.address, (0,), (4,), 64)),
        Affine(np.array([0, 4, 8]), (1,), (4,), 32),
    )
    bench.machine.store(5, DTYPE, (4,), pointer, np.full((1, 1), 1, DTYPE), None)
    assert around.tolist() == [9] * 8 + [1] * 12 + [9] * 4
    (fault,) = bench.faults()
    assert (fault.code, fault.site, fault.core) == ("tile_outside", 5, 2)
    assert (
        fault.facts["argument"] == "x"
        and fault.facts["first"] == 8
        and fault.facts["last"] == 11
        and fault.facts["elements"] == 4
    )
    assert fault.facts["programs"] == [[2, 2]] and fault.facts["stored"]


def test_a_float_at_an_odd_address_is_named() -> None:
    data = np.zeros(64, np.uint8)
    data[5:9] = np.array([1.5], np.float32).view(np.uint8)
    bench = Bench(data)
    pointer = Pointer(bench.argument, Affine(bench.argument.address + 5, (), (), 64))
    got = bench.machine.load(1, np.dtype(np.float32), (), False, pointer, None, None)
    assert float(got[0]) == 1.5
    (fault,) = bench.faults()
    assert fault.code == "tile_misaligned" and fault.facts["rest"] == 1


def test_an_address_without_an_owner() -> None:
    bench = Bench(np.arange(8, dtype=DTYPE))
    pointer = Pointer(None, np.array([[bench.argument.address + 4, 64]]))
    assert bench.machine.load(1, DTYPE, (2,), False, pointer, None, None)[0].tolist() == [1, 0]
    (fault,) = bench.faults()
    assert fault.code == "tile_outside" and fault.facts["address"] == 64 and "argument" not in fault.facts


def test_programs_are_counted_with_the_first_axis_fastest() -> None:
    bench = Bench(np.zeros(1, DTYPE), grid=(2, 3, 4))
    ids = [spelled_out_ids(bench.machine.program_id(axis)) for axis in range(3)]
    assert list(zip(*ids, strict=True)) == [(x, y, z) for z in range(4) for y in range(3) for x in range(2)]
    assert bench.machine.place(7) == (1, 0, 1)


def spelled_out_ids(value: Affine) -> list[int]:
    return np.broadcast_to(value.dense(), (24,)).tolist()


@pytest.mark.parametrize("semantics", [1, 4])
def test_atomics_outside_are_named_too(semantics: int) -> None:
    data = np.zeros(4, DTYPE)
    bench = Bench(data)
    pointer = advance(
        4, Pointer(bench.argument, Affine(bench.argument.address, (0,), (8,), 64)), Affine(0, (1,), (8,), 32)
    )
    old = bench.machine.atomic(3, 4, semantics, True, DTYPE, (8,), pointer, np.ones((1, 1), DTYPE))
    assert data.tolist() == [3, 3, 3, 3]
    assert old[:, :4].tolist() == [[0] * 4, [1] * 4, [2] * 4]
    (fault,) = bench.faults()
    assert fault.code == "tile_outside" and fault.facts["elements"] == 4
