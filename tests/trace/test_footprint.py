"""Footprints against the byte sets that nested loops give."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.trace.footprint import Explicit, Footprint, intern

SHAPES = [
    Footprint(4),
    Footprint(32, ((3, 64),)),
    Footprint(2, ((2, 100), (4, -8))),
    Footprint(1, ((2, 1000), (3, 100), (4, 10))),
    Footprint(4, ((2, 64), (8, 4)), bytes([1, 0, 0, 1, 1, 0, 0, 0]), 1),
    Footprint(4, ((3, 256), (2, 32), (4, 4)), bytes([1, 1, 0, 0, 0, 0, 0, 1]), 2),
]


def expected(shape: Footprint) -> list[int]:
    """Every byte, by counting through the loops."""
    indices = np.ndindex(*[count for count, _ in shape.loops])
    inner = int(np.prod([count for count, _ in shape.loops[len(shape.loops) - shape.mask_rank :]])) if shape.mask else 1
    found = []
    for number, index in enumerate(indices):
        if shape.mask is not None and not shape.mask[number % inner]:
            continue
        start = sum(step * stride for step, (_, stride) in zip(index, shape.loops, strict=True))
        found.extend(range(start, start + shape.nbytes))
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_offsets(shape: Footprint) -> None:
    """Masks and negative strides included; low and high bound the set."""
    offsets = expected(shape)
    assert shape.offsets().tolist() == offsets
    assert shape.low <= min(offsets)
    assert shape.high >= max(offsets) + 1


def test_bounds_are_tight_without_a_mask() -> None:
    """low is the first byte, high one past the last."""
    for shape in SHAPES[:4]:
        offsets = expected(shape)
        assert (shape.low, shape.high) == (min(offsets), max(offsets) + 1)


@pytest.mark.parametrize("shape", [Footprint(0), Footprint(4, ((0, 32),)), Footprint(4, ((2, 4),), bytes(2), 1)])
def test_empty(shape: Footprint) -> None:
    """No bytes, a loop of no turns, no lane."""
    assert shape.empty
    assert shape.offsets().size == 0


def test_interning_gives_equal_shapes_one_number() -> None:
    """Equal values, equal numbers."""
    assert intern(Footprint(96, ((7, 128),))) == intern(Footprint(96, ((7, 128),)))
    assert intern(Footprint(96, ((7, 128),))) != intern(Footprint(96, ((8, 128),)))


def test_explicit() -> None:
    """Any set of starts."""
    shape = Explicit(np.array([10, 4, 30]), 2)
    assert shape.offsets().tolist() == [10, 11, 4, 5, 30, 31]
    assert (shape.low, shape.high) == (4, 32)
