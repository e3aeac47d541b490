"""Reductions inside a repeat (hardware.md 4.1): one result per data block, per pair of lanes, or per repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from npuscope.npu.core import Core
from npuscope.npu.isa.lanes import begin, lane_layout, runs
from npuscope.npu.isa.vector import Extent, Strides
from npuscope.npu.layout import BLOCK, BLOCKS_PER_REPEAT, REPEAT_BYTES, Layout, strided
from npuscope.npu.numbers import compute_in_f32
from npuscope.npu.numbers.dtypes import F16, Array, integer_range
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.footprint import Footprint

SUM, MAX, MIN = "sum", "max", "min"
VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX = range(4)
"""ReduceOrder (frontends.md 2): what a repeat's maximum or minimum leaves in the destination."""

FILLS_EMPTY = frozenset({"3510"})
"""Architectures that store the neutral value where no lane of a result is active; the others keep the old content
(vendor's ReduceDataBlock and ReducePairElem pages)."""
PAIR = 2
INDEX = np.dtype(np.uint32)


@dataclass(frozen=True, slots=True)
class Part:
    """Repeats of a source that share a lane mask: `values` (repeat, lanes), `active` lanes (None: all)."""

    values: Array
    active: Array | None
    first: int


def read_parts(core: Core, source: Tensor, extent: Extent, strides: Strides) -> list[Part]:
    """Read an operand repeat by repeat; `strides` are (block, repeat) in data blocks."""
    itemsize = source.dtype.itemsize
    lanes = REPEAT_BYTES // itemsize
    parts = []
    for run in runs(extent, lanes):
        moved = shifted(source, run.first * strides[1] * BLOCK) if run.first else source
        values = core.load(moved, lane_layout(run, lanes, itemsize, strides[1], strides[0]))
        parts.append(Part(values.reshape(run.repeat, lanes), run.active, run.first))
    return parts


def lowest(kind: str, dtype: np.dtype[Any]) -> Any:
    """The value that no other one is worse than: what inactive lanes count as in a maximum or minimum."""
    if dtype.kind in "iu":
        low, high = integer_range(dtype)
        return dtype.type(low if kind == MAX else high)
    return dtype.type(-np.inf if kind == MAX else np.inf)


def neutral(kind: str, dtype: np.dtype[Any]) -> Any:
    """What an inactive lane counts as. In a sum of floats it is -0, which leaves every value as it is, -0 too."""
    if kind != SUM:
        return lowest(kind, dtype)
    return dtype.type(0) if dtype.kind in "iu" else dtype.type(-0.0)


def tree_sum(values: Array, saturate: bool = False) -> Array:
    """The sum over the last axis by a binary tree: neighbours first, rounded to the type at every level.

    The shape of the tree and the rounding are those of the vendor's ReduceDataBlock page (data1 + data2, data3 +
    data4, then neighbours of these). An odd element joins the next level as it is. With `saturate`, half sums that
    overflow stay at 65504.
    """
    while values.shape[-1] > 1:
        odd = values[..., -1:] if values.shape[-1] % 2 else None
        even = values[..., : values.shape[-1] // 2 * 2]
        sums = add(even[..., 0::2], even[..., 1::2], saturate)
        values = sums if odd is None else np.concatenate([sums, odd], axis=-1)
    return values[..., 0]


def add(left: Array, right: Array, saturate: bool) -> Array:
    """One addition of the unit: half rounds from float32, integers wrap."""
    if left.dtype == F16 and saturate:
        return compute_in_f32(np.add, left, right, saturate=True)
    return left + right


def fold(kind: str, values: Array, active: Array | None, saturate: bool) -> Array:
    """Reduce the last axis; `active` (broadcastable) tells which lanes take part. NaN wins a maximum or minimum."""
    if active is not None:
        values = np.where(active, values, neutral(kind, values.dtype))
    if kind == SUM:
        return tree_sum(values, saturate)
    return values.max(-1) if kind == MAX else values.min(-1)


def best(kind: str, values: Array, active: Array | None) -> tuple[Array, Array]:
    """(value, lane) of the first maximum or minimum of each row; inactive lanes are numbered but not looked at."""
    lanes = None if active is None else np.flatnonzero(active)
    seen = values if lanes is None else values[:, lanes]
    place = seen.argmax(1) if kind == MAX else seen.argmin(1)
    value = seen[np.arange(len(seen)), place]
    return value, place if lanes is None else lanes[place]


@lru_cache(maxsize=1024)
def result_layout(repeat: int, step: int, count: int, itemsize: int, flags: bytes | None = None) -> Layout:
    """`count` results per repeat, repeats `step` bytes apart, shape (repeat, count); `flags` picks those written."""
    shape, strides = (repeat, count), (step, itemsize)
    if flags is None or all(flags):
        return strided(shape, strides, itemsize)
    loops = tuple(zip(shape, strides, strict=True))
    mask = np.frombuffer(flags, np.bool_)
    return Layout(shape, strides, itemsize, Footprint(itemsize, loops, flags, 1), mask=mask)


def reduce_groups(
    core: Core,
    site: int,
    opcode: int,
    kind: str,
    destination: Tensor,
    source: Tensor,
    extent: Extent,
    strides: Strides,
    step: int,
    groups: int,
) -> None:
    """One result for each of the `groups` equal groups of neighbouring lanes of a repeat, repeats `step` results apart.

    8 groups are data blocks (vcgadd, vcgmax, vcgmin), half as many groups as lanes are pairs (vcpadd). A group without
    an active lane leaves its result as it was, or gives the neutral value (0, -inf, inf) on 3510.
    """
    extent = begin(core, site, opcode, extent, REPEAT_BYTES // source.dtype.itemsize)
    itemsize = destination.dtype.itemsize
    stride = step * groups * itemsize
    fills = core.chip.arch in FILLS_EMPTY
    for part in read_parts(core, source, extent, strides):
        repeat = len(part.values)
        grouped = part.values.reshape(repeat, groups, -1)
        active = None if part.active is None else part.active.reshape(groups, -1)
        results = fold(kind, grouped, active, core.registers.saturate)
        flags = None if active is None else active.any(1)
        if flags is not None and fills:
            empty = 0 if kind == SUM else lowest(kind, results.dtype)
            results, flags = np.where(flags, results, results.dtype.type(empty)), None
        layout = result_layout(repeat, stride, groups, itemsize, None if flags is None else flags.tobytes())
        core.store(shifted(destination, part.first * stride), layout, results)


def reduce_blocks(
    core: Core, site: int, opcode: int, kind: str, destination: Tensor, source: Tensor, extent: Extent,
    strides: Strides, step: int,
) -> None:
    """vcgadd, vcgmax, vcgmin: one result per data block, 8 a repeat (vendor's ReduceDataBlock page)."""
    reduce_groups(core, site, opcode, kind, destination, source, extent, strides, step, BLOCKS_PER_REPEAT)


def reduce_pairs(
    core: Core, site: int, opcode: int, destination: Tensor, source: Tensor, extent: Extent, strides: Strides,
    step: int,
) -> None:
    """vcpadd: the sum of each even lane and its odd neighbour (vendor's ReducePairElem page)."""
    groups = REPEAT_BYTES // source.dtype.itemsize // PAIR
    reduce_groups(core, site, opcode, SUM, destination, source, extent, strides, step, groups)


def reduce_repeats_sum(
    core: Core, site: int, opcode: int, destination: Tensor, source: Tensor, extent: Extent, strides: Strides,
    step: int,
) -> None:
    """vcadd: the sum of each repeat, results `step` elements apart (vendor's ReduceRepeat page)."""
    extent = begin(core, site, opcode, extent, REPEAT_BYTES // source.dtype.itemsize)
    stride = step * destination.dtype.itemsize
    for part in read_parts(core, source, extent, strides):
        sums = fold(SUM, part.values.astype(destination.dtype, copy=False), part.active, core.registers.saturate)
        layout = strided((len(sums),), (stride,), destination.dtype.itemsize)
        core.store(shifted(destination, part.first * stride), layout, sums)


def reduce_repeats_best(
    core: Core, site: int, opcode: int, kind: str, destination: Tensor, source: Tensor, extent: Extent,
    strides: Strides, step: int, order: int,
) -> None:
    """vcmax, vcmin: the first maximum or minimum of each repeat and its lane, in ReduceOrder `order`.

    `step` counts results: a value, a (value, index) pair, or a 32-bit index. In a pair the index is stored as the bits
    of an unsigned integer as wide as the value (vendor's ReduceRepeat page, table 3).
    """
    extent = begin(core, site, opcode, extent, REPEAT_BYTES // source.dtype.itemsize)
    target, count = _result_form(destination, order)
    stride = step * count * target.dtype.itemsize
    for part in read_parts(core, source, extent, strides):
        value, lane = best(kind, part.values, part.active)
        layout = result_layout(len(value), stride, count, target.dtype.itemsize)
        core.store(shifted(target, part.first * stride), layout, ORDERED[order](value, lane))


def _result_form(destination: Tensor, order: int) -> tuple[Tensor, int]:
    """The operand as the result's elements, and how many of them a result has."""
    if order == ONLY_INDEX:
        return destination.cast(INDEX), 1
    return destination, 1 if order == ONLY_VALUE else 2


def pairs(value: Array, index: Array) -> Array:
    """(value, index) pairs, shape (n, 2), the index as the bits of an unsigned integer of the value's width."""
    bits = np.dtype(f"u{value.dtype.itemsize}")
    both = np.empty((len(value), 2), bits)
    both[:, 0] = np.ascontiguousarray(value).view(bits)
    both[:, 1] = index.astype(bits)
    return both.view(value.dtype)


ORDERED: dict[int, Callable[[Array, Array], Array]] = {
    VALUE_INDEX: pairs,
    INDEX_VALUE: lambda value, lane: pairs(value, lane)[:, ::-1],
    ONLY_VALUE: lambda value, lane: value[:, None],
    ONLY_INDEX: lambda value, lane: lane.astype(INDEX)[:, None],
}
"""Results of the repeats in each ReduceOrder, shape (repeat, elements per result)."""
