"""Integer operations on rows and arrays against numpy's on all numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from values import PROGRAMS, affines, boxes, shapes, spelled_out
from values import integers as any_integers

from npuscope.tile import box, integers
from npuscope.tile import shapes as moves
from npuscope.tile.affine import SIGNED, Affine
from npuscope.tile.overflow import Wrapped
from npuscope.tile.pointer import splat

UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
ignore = partial(lambda lanes: None)


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    safe = np.where(b == 0, b.dtype.type(1), b)
    return (a - np.fmod(a, safe)) // safe


def bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the same bits without a sign."""

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        kind = UNSIGNED[a.dtype.itemsize * 8]
        result = function(a.view(kind), b.view(kind))
        return result if result.dtype == np.bool_ else result.view(a.dtype)

    return apply


TABLE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (partial(integers.add, 1), np.add),
    "subtract": (partial(integers.subtract, 1), np.subtract),
    "multiply": (partial(integers.multiply, 1), np.multiply),
    "minimum": (integers.minimum, np.minimum),
    "maximum": (integers.maximum, np.maximum),
    "divide": (partial(integers.divide, ignore), quotient),
    "remainder": (partial(integers.remainder, ignore), lambda a, b: np.fmod(a, np.where(b == 0, b.dtype.type(1), b))),
    "divide_unsigned": (
        partial(integers.divide_unsigned, ignore),
        bare(lambda a, b: a // np.where(b == 0, b.dtype.type(1), b)),
    ),
    "remainder_unsigned": (
        partial(integers.remainder_unsigned, ignore),
        bare(lambda a, b: a % np.where(b == 0, b.dtype.type(1), b)),
    ),
    "and": (integers.conjunction, np.bitwise_and),
    "or": (integers.disjunction, np.bitwise_or),
    "xor": (integers.exclusive, np.bitwise_xor),
    "minimum_unsigned": (integers.minimum_unsigned, bare(np.minimum)),
    "maximum_unsigned": (integers.maximum_unsigned, bare(np.maximum)),
    **{
        f"compare_{predicate}": (partial(integers.compare, predicate), function)
        for predicate, function in enumerate(
            [
                np.equal,
                np.not_equal,
                np.less,
                np.less_equal,
                np.greater,
                np.greater_equal,
                *map(bare, [np.less, np.less_equal, np.greater, np.greater_equal]),
            ]
        )
    },
}


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_binary_operations(name: str, data: st.DataObject) -> None:
    ours, theirs = TABLE[name]
    shape, bits = data.draw(shapes()), data.draw(st.sampled_from([8, 16, 32, 64]))
    one, other = data.draw(any_integers(shape, bits)), data.draw(any_integers(shape, bits))
    with np.errstate(all="ignore"):
        want = theirs(np.ascontiguousarray(spelled_out(one, shape)), np.ascontiguousarray(spelled_out(other, shape)))
        got = ours(one, other)
    assert not isinstance(got, Affine) or np.array_equal(got.dense(), got.wide()), "the numbers fit their width"
    np.testing.assert_array_equal(spelled_out(got, shape), want)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_shifts(data: st.DataObject) -> None:
    shape, bits = data.draw(shapes()), data.draw(st.sampled_from([8, 16, 32, 64]))
    value, amount = data.draw(any_integers(shape, bits)), data.draw(st.integers(0, bits - 1))
    by = Affine(amount, (0,) * len(shape), shape, bits)
    plain = np.ascontiguousarray(spelled_out(value, shape))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(spelled_out(integers.shift_left(1, value, by), shape), plain << amount)
        np.testing.assert_array_equal(spelled_out(integers.shift_right(value, by), shape), plain >> amount)
        logical = (plain.view(UNSIGNED[bits]) >> UNSIGNED[bits](amount)).view(plain.dtype)
        np.testing.assert_array_equal(spelled_out(integers.shift_right_unsigned(value, by), shape), logical)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_widths(data: st.DataObject) -> None:
    shape, bits = data.draw(shapes()), data.draw(st.sampled_from([8, 16, 32]))
    value = data.draw(any_integers(shape, bits))
    plain = np.ascontiguousarray(spelled_out(value, shape))
    np.testing.assert_array_equal(spelled_out(integers.widen(64, value), shape), plain.astype(np.int64))
    np.testing.assert_array_equal(
        spelled_out(integers.widen_unsigned(64, value), shape), plain.view(UNSIGNED[bits]).astype(np.int64)
    )
    np.testing.assert_array_equal(spelled_out(integers.narrow(8, value), shape), plain.astype(np.int8))


def test_an_overflow_is_remembered_by_sums_and_forgotten_by_hashes() -> None:
    rows = Affine(np.array([1, 2**30, 3]), (), (), 32)
    product = integers.multiply(7, rows, Affine(4, (), (), 32))
    assert isinstance(product, Wrapped) and product.note is not None
    assert (product.note.site, product.note.one, product.note.other, product.note.wrapped) == (7, 2**30, 4, 0)
    assert isinstance(integers.add(1, product, rows), Wrapped)
    assert not isinstance(integers.exclusive(product, rows), Wrapped)


def test_lanes_that_divide_by_zero_are_reported() -> None:
    seen: list[np.ndarray] = []
    got = integers.divide(seen.append, np.array([[6, 7]], np.int32), np.array([[0, 2]], np.int32))
    assert seen[0].tolist() == [[True, False]] and int(got[0, 1]) == 3


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_move_as_arrays_do(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    value = data.draw(affines(shape, 32) | boxes(shape))
    plain = spelled_out(value, shape)
    axis = data.draw(st.integers(0, len(shape)))
    longer = (*shape[:axis], 1, *shape[axis:])
    expanded = moves.expand(axis, longer, value)
    np.testing.assert_array_equal(spelled_out(expanded, longer), np.expand_dims(plain, axis + 1))
    wide = tuple(5 if count == 1 else count for count in longer)
    np.testing.assert_array_equal(
        spelled_out(moves.broadcast(wide, expanded), wide),
        np.broadcast_to(np.expand_dims(plain, axis + 1), (PROGRAMS, *wide)),
    )
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    turned = tuple(shape[place] for place in order)
    np.testing.assert_array_equal(
        spelled_out(moves.transpose(order, turned, value), turned), plain.transpose(0, *(place + 1 for place in order))
    )
    flat = (int(np.prod(shape)),)
    np.testing.assert_array_equal(spelled_out(moves.reshape(shape, flat, value), flat), plain.reshape(PROGRAMS, -1))
    np.testing.assert_array_equal(
        spelled_out(moves.reshape(flat, shape, moves.reshape(shape, flat, value)), shape), plain
    )


def test_one_axis_taken_apart_stays_in_a_row() -> None:
    value = moves.reshape((64,), (4, 1, 16), Affine(5, (3,), (64,), 32))
    assert isinstance(value, Affine) and value.strides == (48, 0, 3)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_masks(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    one, other = data.draw(boxes(shape)), data.draw(boxes(shape))
    both = spelled_out(one, shape) & spelled_out(other, shape)
    np.testing.assert_array_equal(spelled_out(box.both(one, other), shape), both)
    np.testing.assert_array_equal(
        spelled_out(integers.disjunction(one, other), shape), spelled_out(one, shape) | spelled_out(other, shape)
    )
    holds = np.array(data.draw(st.lists(st.booleans(), min_size=PROGRAMS, max_size=PROGRAMS)))
    if shape:
        np.testing.assert_array_equal(
            spelled_out(box.programs(holds, shape), shape),
            np.broadcast_to(holds.reshape(-1, *(1 for _ in shape)), (PROGRAMS, *shape)),
        )


def test_numbers_of_one_program_become_tiles() -> None:
    tile = splat((2, 4), np.array([1.0, 2.0, 3.0]))
    assert tile.shape == (3, 1, 1)
    assert splat((4,), Affine(np.arange(3), (), (), 32)).strides == (0,)
    assert SIGNED[32] == np.int32
