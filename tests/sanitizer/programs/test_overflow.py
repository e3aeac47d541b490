"""Wrapped integers, held against Python's own, which have no width."""

from __future__ import annotations

import random

import numpy as np
import pytest
from programs.tile_bench import Bench

from npuscope.tile import integers
from npuscope.tile.affine import Affine
from npuscope.tile.overflow import Wrapped, exactly, plain

OPERATIONS = {"+": integers.add, "-": integers.subtract, "*": integers.multiply}
EDGES = [0, 1, -1, 7, 65535, 65536, 1 << 30, (1 << 31) - 1, -(1 << 31), 123456789]


def as_int32(number: int) -> int:
    """The number as 32 bits with a sign hold it."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.parametrize("seed", range(30))
def test_chains(seed: int) -> None:
    """Sums and products of arrays are what the device has, and know what they should have been."""
    chance = random.Random(seed)
    numbers = [[chance.choice(EDGES) for _ in range(6)] for _ in range(4)]
    value = np.array([numbers[0]], np.int32)
    exact, wrapped = list(numbers[0]), list(numbers[0])
    for row in numbers[1:3]:
        operation = chance.choice(list(OPERATIONS))
        step = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[operation]
        value = OPERATIONS[operation](0, value, np.array([row], np.int32))
        exact = [step(one, other) for one, other in zip(exact, row, strict=True)]
        wrapped = [as_int32(step(one, other)) for one, other in zip(wrapped, row, strict=True)]
    assert plain(value).tolist() == [wrapped]
    assert [as_int32(number) for number in exact] == wrapped
    if type(value) is Wrapped:
        assert value.note is not None
        small = [abs(number) < 1 << 63 for number in exact]
        assert [found for found, fits in zip(exactly(value)[0].tolist(), small, strict=True) if fits] == [
            number for number, fits in zip(exact, small, strict=True) if fits
        ]
    else:
        assert exact == wrapped


def test_moves_carry_both() -> None:
    """Another shape, a choice, a wider type: the exact numbers come along."""
    value = integers.multiply(0, np.array([[70000, 2]], np.int32), np.array([[70000, 3]], np.int32))
    assert type(value) is Wrapped
    for moved in (
        np.expand_dims(value, 2), np.broadcast_to(value, (4, 2)), value.reshape(2, 1), value[:, :1], value.astype(np.int64),
        np.where(np.array([[True, False]]), value, value), value.transpose(1, 0),
    ):  # fmt: skip
        assert type(moved) is Wrapped
        assert moved.exact.flat[0] == 4_900_000_000


@pytest.mark.parametrize("use", [lambda value: value & 63, lambda value: value >> 3, lambda value: value ^ 5, lambda value: value % 7,
                                 lambda value: value == 3, lambda value: value.astype(np.int16), lambda value: value.sum()])  # fmt: skip
def test_what_is_meant_to_wrap_is_plain(use: object) -> None:
    """Hashes and remainders of a wrapped number are ordinary numbers."""
    value = integers.multiply(0, np.array([[70000]], np.int32), np.array([[70000]], np.int32))
    assert type(use(value)) is not Wrapped  # type: ignore[operator]


def test_numbers_in_a_row() -> None:
    """The case that is told is the one that is farthest out."""
    rows = Affine(np.arange(0, 5000, dtype=np.int64), (), (), 32)
    value = integers.multiply(3, rows, Affine(1 << 20, (), (), 32))
    assert type(value) is Wrapped
    note = value.note
    assert (note.operation, note.site, note.one, note.other, note.exact, note.wrapped) == (
        "*", 3, 4999, 1 << 20, 4999 << 20, as_int32(4999 << 20),
    )  # fmt: skip


def test_back_in_range_is_no_overflow() -> None:
    """What wraps there and back is right in the end."""
    big = np.array([[1 << 30, 1 << 29]], np.int32)
    there = integers.multiply(0, big, np.array([[4, 4]], np.int32))
    back = integers.subtract(0, there, integers.multiply(0, big, np.array([[3, 3]], np.int32)))
    assert type(back) is not Wrapped
    assert back.tolist() == [[1 << 30, 1 << 29]]


def test_loaded_factors(bench: Bench) -> None:
    """The factor came from memory; lanes that land inside the tensor by accident are told as well."""
    kernels = bench.kernels("fault_kernels")
    found = bench.run(kernels.product_of_loaded)
    assert found.kinds == ["illegal-read", "integer-overflow"]
    assert "70000 * 65536 = 4587520000 does not fit int32 and becomes 292552704." in found.text
    assert "4 lanes" not in found.text
    inside = bench.run(kernels.product_that_lands_inside).only("integer-overflow")
    assert "one reads x[0] instead of element 4294967296" in inside.summary
    assert "lane 3 of 4" in inside.notes[0]
    summed = bench.run(kernels.sum_that_passes)
    assert "2147483600 + 2147483600 = 4294967200 does not fit int32 and becomes -96." in summed.text
