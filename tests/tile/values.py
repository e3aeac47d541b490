"""Values of tile programs for tests: drawn at random, and spelled out."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from npuscope.tile.affine import SIGNED, Affine, dense
from npuscope.tile.box import Box

PROGRAMS = 3


def spelled_out(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """All numbers of a value, (programs, *shape)."""
    return np.broadcast_to(np.asarray(dense(value)), (PROGRAMS, *shape)).view(np.ndarray)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Tiles of up to three axes."""
    return tuple(draw(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=3)))


@st.composite
def affines(draw: st.DrawFn, shape: tuple[int, ...], bits: int, reach: int | None = None) -> Affine:
    """Integers in a row that fit their width."""
    limit = reach if reach is not None else 1 << (bits - 1)
    room = limit // (1 << (2 + 4 * len(shape)))
    numbers = st.integers(-(limit // 4), limit // 4) | st.integers(-9, 9)
    strides = tuple(draw(st.integers(-3, 3) | st.integers(-room, room)) for _ in shape)
    base = (
        draw(numbers)
        if draw(st.booleans())
        else np.array(draw(st.lists(numbers, min_size=PROGRAMS, max_size=PROGRAMS)))
    )
    return Affine(base, strides, shape, bits)


@st.composite
def integers(draw: st.DrawFn, shape: tuple[int, ...], bits: int) -> Any:
    """Integers in a row or as an array of which some axes have the length 1."""
    if draw(st.booleans()):
        return draw(affines(shape, bits))
    size = tuple(count if draw(st.booleans()) else 1 for count in (PROGRAMS, *shape))
    limit = 1 << (bits - 1)
    numbers = st.integers(-limit, limit - 1) | st.integers(-9, 9)
    count = int(np.prod(size))
    listed = draw(st.lists(numbers, min_size=count, max_size=count))
    return np.array(listed, SIGNED[bits]).reshape(size)


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> Box:
    """Masks true inside a box."""
    bounds: dict[int, Any] = {}
    for axis, count in enumerate(shape):
        if draw(st.booleans()):
            ends = st.integers(0, count)
            if draw(st.booleans()):
                bounds[axis] = (draw(ends), draw(ends))
            else:
                bounds[axis] = tuple(
                    np.array(draw(st.lists(ends, min_size=PROGRAMS, max_size=PROGRAMS))) for _ in range(2)
                )
    return Box(shape, bounds)
