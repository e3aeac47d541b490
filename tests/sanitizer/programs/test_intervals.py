"""Bytes as sorted intervals, held against sets of bytes."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from npuscope.sanitizer.programs.init import uncovered
from npuscope.sanitizer.programs.meetings import MOST_STEPS, meetings
from npuscope.sanitizer.programs.places import index_of
from npuscope.sanitizer.programs.results import common
from npuscope.sanitizer.programs.rows import Intervals, intervals, united
from npuscope.sanitizer.programs.tally import united as united_numbers
from npuscope.trace.footprint import Explicit, Footprint, intern
from npuscope.trace.schema import Buffer, Space


def some(chance: random.Random, count: int, reach: int = 60, longest: int = 9) -> Intervals:
    """Random intervals of a few programs."""
    start = np.array([chance.randrange(reach) for _ in range(count)], np.int64)
    length = np.array([chance.randrange(1, longest) for _ in range(count)], np.int64)
    program = np.array([chance.randrange(4) for _ in range(count)], np.int64)
    return Intervals(start, start + length, program, np.arange(count, dtype=np.int64))


def spans(chance: random.Random, count: int) -> np.ndarray:
    """Sorted spans that do not touch."""
    cuts = sorted(chance.sample(range(80), 2 * count))
    return np.array(cuts, np.int64).reshape(-1, 2)


def bytes_of(pairs: np.ndarray) -> set[int]:
    """Every byte of some spans."""
    return {byte for start, end in pairs.tolist() for byte in range(start, end)}


@pytest.mark.parametrize("seed", range(20))
def test_united(seed: int) -> None:
    """Each program's bytes stay the same, and no two of its intervals touch."""
    pieces = some(random.Random(seed), 30)
    whole = united(pieces)
    for program in range(4):
        mine, theirs = pieces.program == program, whole.program == program
        before = bytes_of(np.stack((pieces.start[mine], pieces.end[mine]), axis=1))
        parts = np.stack((whole.start[theirs], whole.end[theirs]), axis=1)
        assert bytes_of(parts) == before
        assert (parts[1:, 0] > parts[:-1, 1]).all()


@pytest.mark.parametrize("seed", range(20))
def test_meetings(seed: int) -> None:
    """Two programs meet where they share bytes: every pair of them is found, and its first byte is shared."""
    chance = random.Random(seed)
    one, other = united(some(chance, 12)), united(some(chance, 12))
    found = meetings(one, other)
    rows = {(int(a), int(b)) for a, b in found[:2].T}
    expected = set()
    for a in range(one.start.size):
        for b in range(other.start.size):
            shared = max(one.start[a], other.start[b]) < min(one.end[a], other.end[b])
            if shared and one.program[a] != other.program[b]:
                expected.add((int(one.row[a]), int(other.row[b])))
    assert one.start.size <= MOST_STEPS * 4
    assert rows == expected


def test_meetings_of_a_set_with_itself() -> None:
    """Each pair once."""
    pieces = united(Intervals(*(np.array(column) for column in ([0, 2, 4], [5, 6, 9], [0, 1, 2], [0, 1, 2]))))
    assert {tuple(pair) for pair in meetings(pieces, pieces)[:2].T.tolist()} == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("seed", range(20))
def test_uncovered_and_common(seed: int) -> None:
    """Differences and intersections of sets of bytes."""
    chance = random.Random(seed)
    one, other = spans(chance, 6), spans(chance, 6)
    assert bytes_of(uncovered(one, other)) == bytes_of(one) - bytes_of(other)
    assert bytes_of(common(one, other)) == bytes_of(one) & bytes_of(other)
    assert uncovered(one, one).size == 0


@pytest.mark.parametrize("seed", range(10))
def test_intervals_of_rows(seed: int) -> None:
    """Footprints in loops and explicit places touch the bytes that they say."""
    chance = random.Random(seed)
    explicit = [Explicit(np.array(chance.sample(range(100), 7)) * 4, 4) for _ in range(4)]
    shapes = [Footprint(chance.choice([4, 8]), ((chance.randrange(1, 5), 32), (chance.randrange(1, 4), 12))) for _ in range(4)]
    footprint = np.array([*map(intern, shapes), -1, -2, -3, -4])
    address = np.array([chance.randrange(1000) for _ in footprint], np.int64)
    program = np.array([chance.randrange(3) for _ in footprint])
    rows = SimpleNamespace(footprint=footprint, address=address, program=program, batch=SimpleNamespace(explicit=explicit))
    found = intervals(rows, np.arange(footprint.size))
    for row, shape in enumerate([*shapes, *explicit]):
        mine = found.row == row
        expected = set((address[row] + shape.offsets()).tolist())
        assert bytes_of(np.stack((found.start[mine], found.end[mine]), axis=1)) == expected
        assert (found.program[mine] == program[row]).all()


@pytest.mark.parametrize("seed", range(10))
def test_stretches(seed: int) -> None:
    """Program numbers stay the same when stretches of them are joined."""
    chance = random.Random(seed)
    pairs = [(low, low + chance.randrange(5)) for low in (chance.randrange(50) for _ in range(12))]
    joined = united_numbers(pairs)
    numbers = {number for low, high in pairs for number in range(low, high + 1)}
    assert {number for low, high in joined for number in range(low, high + 1)} == numbers
    assert all(later[0] > earlier[1] + 1 for earlier, later in zip(joined, joined[1:], strict=False))


@pytest.mark.parametrize("order", ["C", "F"])
def test_index_of(order: str) -> None:
    """Every element of an array, rows first or columns first, has the index that numpy gives it."""
    array = np.arange(24).reshape((2, 3, 4), order=order)
    strides = tuple(step // array.itemsize for step in array.strides)
    buffer = Buffer(Space.GM, -1, 0, array.nbytes, "argument", "x", "int64", array.shape, strides=strides)
    for index in np.ndindex(array.shape):
        offset = sum(place * step for place, step in zip(index, strides, strict=True))
        assert index_of(buffer, offset) == index
