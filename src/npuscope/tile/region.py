"""Accesses in a row: blocks of regular addresses, one per program, moved without an index for each element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npuscope.tile.affine import Affine
from npuscope.tile.box import Box
from npuscope.tile.storage import Argument

MOST_RUNS = 32
"""More pieces than this are moved faster one index at a time."""


@dataclass(slots=True)
class Region:
    """What each of `count` programs touches: from `first[p]` on, `extents[k][p]` elements at `strides[k]` bytes.

    `starts[k][p]` is the index in the tile at which that begins along axis k; `alive` tells who touches anything.
    """

    first: np.ndarray
    starts: list[Any]
    extents: list[Any]
    strides: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    alive: np.ndarray
    full: bool


def region_of(address: Affine, box: Box, size: int, count: int) -> Region:
    """The region of addresses inside a box, for elements of `size` bytes in `count` programs (1 where all agree)."""
    first = np.broadcast_to(np.asarray(address.base, np.int64).reshape(-1), (count,))
    alive = np.ones(count, np.bool_)
    starts, extents = [], []
    low, high = first, first + size
    for axis, (begin, end) in enumerate(box.limits()):
        stride = address.strides[axis]
        extent = end - begin
        starts.append(begin)
        extents.append(extent)
        if axis in box.bounds:
            alive = alive & (np.asarray(extent) > 0)
            moved = begin * stride
            first, low, high = first + moved, low + moved, high + moved
        reach = (extent - 1) * stride
        if stride > 0:
            high = high + reach
        elif stride < 0:
            low = low + reach
    return Region(first, starts, extents, address.strides, low, high, alive, not box.bounds or box.full)


def inside(region: Region, argument: Argument) -> bool:
    """Whether all of it lies in the argument's view (which has no gaps)."""
    held = (region.low >= argument.low) & (region.high <= argument.high)
    return bool(np.all(held | ~region.alive))


def runs(region: Region) -> list[tuple[int, int, int]] | None:
    """Programs [begin, end) whose blocks have one size and lie at equal distances, with that distance in bytes.

    None when there would be too many pieces.
    """
    first, count = region.first, region.first.size
    if count == 1:
        return [(0, 1, 0)]
    changed = np.zeros(count - 1, np.bool_)
    for bound in (*region.starts, *region.extents):
        if isinstance(bound, np.ndarray) and bound.size > 1:
            changed |= bound[1:] != bound[:-1]
    steps = np.diff(first)
    broken = np.flatnonzero((steps[1:] != steps[:-1]) | changed[1:] | changed[:-1]) + 1
    if broken.size > 2 * MOST_RUNS:
        return None
    found: list[tuple[int, int, int]] = []
    begin = 0
    while begin < count:
        if begin == count - 1 or changed[begin]:
            end, step = begin + 1, 0
        else:
            step = int(steps[begin])
            later = broken[np.searchsorted(broken, begin, "right") :]
            end = begin + 2
            while end < count and not (changed[end - 1] or steps[end - 1] != step):
                # Nothing changes before the next break.
                position = np.searchsorted(later, end - 1, "left")
                end = int(later[position]) + 1 if position < later.size else count
        found.append((begin, end, step))
        begin = end
    return found if len(found) <= MOST_RUNS else None


def pick(bound: Any, program: int) -> int:
    """A bound of one program."""
    return int(bound[program]) if isinstance(bound, np.ndarray) and bound.size > 1 else int(np.asarray(bound).flat[0])


def blocks(
    region: Region, pieces: list[tuple[int, int, int]], argument: Argument, dtype: np.dtype[Any]
) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """(where in the tile array, the memory there) of every piece."""
    for begin, end, step in pieces:
        extents = tuple(pick(extent, begin) for extent in region.extents)
        if min(extents, default=1) <= 0:
            continue
        starts = [pick(start, begin) for start in region.starts]
        place = (slice(begin, end), *(slice(s, s + e) for s, e in zip(starts, extents, strict=True)))
        memory = argument.storage.window(
            dtype, int(region.first[begin]), (end - begin, *extents), (step, *region.strides)
        )
        yield place, memory
