"""Pops and retirements find each other (opprof.md 4.3)."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.profiler.busy import union_lengths
from npuscope.profiler.ingest.groups import MERGED, PAIRED, REVERSED, UNMATCHED, number, pair, ranks


def paired(
    pops: list[int], retires: list[int], merge: bool = True
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """(pop and retirement ticks of the slices, fates) of one pc."""
    ours, theirs = np.array(pops, np.int64), np.array(retires, np.int64)
    partner, pop_fate, retire_fate = pair(
        np.zeros(ours.size, np.int64), ours, np.zeros(theirs.size, np.int64), theirs, 1, merge
    )
    slices = [(pops[row], retires[other]) for row, other in enumerate(partner.tolist()) if other >= 0]
    return slices, pop_fate.tolist(), retire_fate.tolist()


def test_the_kth_goes_with_the_kth() -> None:
    assert paired([1, 5, 9], [4, 6, 20])[0] == [(1, 4), (5, 6), (9, 20)]


def test_equal_numbers_are_not_merged() -> None:
    assert paired([1, 2], [3, 4])[0] == [(1, 3), (2, 4)]


def test_parts_that_retire_within_eight_cycles_are_one() -> None:
    slices, _, fates = paired([10, 100], [20, 28, 36, 120])
    assert slices == [(10, 36), (100, 120)]
    assert fates == [MERGED, MERGED, PAIRED, PAIRED]
    assert paired([10, 100], [20, 29, 120])[0] == [(10, 20)]  # nine apart are two, and the second one is too early


def test_parts_that_pop_one_cycle_apart_are_one() -> None:
    slices, fates, _ = paired([10, 11, 12, 50], [20, 60])
    assert slices == [(10, 20), (50, 60)]
    assert fates == [PAIRED, MERGED, MERGED, PAIRED]


def test_the_longer_list_is_truncated() -> None:
    slices, fates, _ = paired([10, 20, 30], [15, 25])
    assert slices == [(10, 15), (20, 25)]
    assert fates == [PAIRED, PAIRED, UNMATCHED]
    slices, _, fates = paired([10], [15, 35])
    assert slices == [(10, 15)] and fates == [PAIRED, UNMATCHED]


def test_times_in_the_wrong_order_make_no_slice() -> None:
    slices, pops, retires = paired([10, 20], [5, 25])
    assert slices == [(20, 25)]
    assert pops == [REVERSED, PAIRED] and retires == [REVERSED, PAIRED]


def test_nothing_to_pair() -> None:
    assert paired([], [])[0] == []
    assert paired([1], []) == ([], [UNMATCHED], [])
    assert paired([], [1]) == ([], [], [UNMATCHED])


def test_ids_are_never_merged() -> None:
    assert paired([10, 11], [20], merge=False)[1] == [PAIRED, UNMATCHED]


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_numbers_stand_for_pairs_of_values(size: int) -> None:
    generator = np.random.default_rng(3)
    left, right = generator.integers(-3, 3, size), generator.integers(0, 1 << 40, size) % 5
    codes, examples = number(left, right)
    keys = list(zip(left.tolist(), right.tolist(), strict=True))
    seen: dict[tuple[int, int], int] = {}
    assert codes.tolist() == [seen.setdefault(key, len(seen)) for key in keys]
    assert [keys[row] for row in examples] == list(seen)
    assert ranks(codes, examples.size).tolist() == [keys[:row].count(key) for row, key in enumerate(keys)]


def test_overlapping_cycles_count_once() -> None:
    group, start, end = np.zeros(4, np.int64), np.array([1, 2, 10, 12]), np.array([5, 4, 11, 20])
    assert union_lengths(group, start, end, 1).tolist() == [4 + 1 + 8]
