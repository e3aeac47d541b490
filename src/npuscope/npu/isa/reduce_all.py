"""Reductions of a whole operand to one value. They are library code over vcadd, vcmax and vcmin that keeps the results
of the repeats in a temporary buffer; each is one row of the trace (vendor's ReduceMax, ReduceMin and ReduceSum pages).
"""

from __future__ import annotations

import numpy as np

from npuscope.npu.core import Core
from npuscope.npu.isa.reduce import MAX, SUM, Part, add, best, fold, neutral, pairs, read_parts, tree_sum
from npuscope.npu.isa.vector import Extent, V, mask_columns
from npuscope.npu.layout import BLOCK, REPEAT_BYTES, contiguous
from npuscope.npu.numbers.dtypes import F16, Array
from npuscope.npu.tensor import Tensor

PAIR = 2
IN_REGISTERS = "3510"
"""The architecture whose maximum and minimum need no temporary buffer."""
MERGED_REPEATS = 4
"""Up to this many repeats the count form of the sum on 3510 adds the repeats lane by lane before the tree."""
IN_ORDER, BY_TREE, MERGED = "in order", "by tree", "merged"
"""How a sum combines the repeats."""


def _begin(core: Core, site: int, opcode: int, source: Tensor, extent: Extent) -> None:
    lanes = REPEAT_BYTES // source.dtype.itemsize
    work = extent.count if extent.count >= 0 else extent.repeat * lanes
    core.begin(site, V, opcode, extent.repeat, *mask_columns(extent), work=work)


def _keep(core: Core, temporary: Tensor, position: int, values: Array) -> None:
    """Write intermediate results to the temporary buffer, `position` elements in."""
    core.store(temporary.at(position), contiguous(values.size, values.dtype.itemsize), values.reshape(-1))


# -- maximum and minimum -------------------------------------------------------------------------------------------


def reduce_all_best(
    core: Core, site: int, opcode: int, kind: str, destination: Tensor, source: Tensor, temporary: Tensor,
    extent: Extent, repeat_stride: int, with_index: bool,
) -> None:
    """The first maximum or minimum of all active lanes, and with `with_index` where it lies.

    The index counts elements from the start of the source, gaps between repeats included, and is stored as the bits of
    an unsigned integer as wide as the value, so its low 16 bits for half. Without an active lane nothing is written.
    """
    _begin(core, site, opcode, source, extent)
    parts = read_parts(core, source, extent, (1, repeat_stride))
    if not parts:
        return
    results = [best(kind, part.values, part.active) for part in parts]
    values = np.concatenate([value for value, _ in results])
    lanes = np.concatenate([lane for _, lane in results])
    if core.chip.arch != IN_REGISTERS:
        body = len(results[0][0])  # the count form looks at a partial last repeat after the full ones
        _keep_levels(core, temporary, kind, values[:body], lanes[:body], with_index)
        if body < len(values):
            first = best(kind, values[None, :body], None)[0]
            _keep(core, temporary, 0, np.concatenate([first, values[body:]]))
    place = int(values.argmax() if kind == MAX else values.argmin())
    index = place * repeat_stride * (BLOCK // source.dtype.itemsize) + int(lanes[place])
    answer = pairs(values[place : place + 1], np.array([index])).reshape(-1)[: PAIR if with_index else 1]
    core.store(destination, contiguous(answer.size, answer.dtype.itemsize), answer)


def _keep_levels(core: Core, temporary: Tensor, kind: str, values: Array, lanes: Array, with_index: bool) -> None:
    """Write the (value, index) pairs of the repeats, then of repeats of these, down to one pair.

    With the index every level has a place of its own that starts on a data block, and a single repeat needs none;
    without it the levels share the start of the buffer.
    """
    group = REPEAT_BYTES // values.dtype.itemsize // PAIR
    block = BLOCK // values.dtype.itemsize
    position = 0
    while len(values) > 1 or not with_index or position:
        _keep(core, temporary, position, pairs(values, lanes))
        if len(values) == 1:
            return
        if with_index:
            position += -(-PAIR * len(values) // block) * block
        chosen = [best(kind, values[None, start : start + group], None) for start in range(0, len(values), group)]
        values = np.concatenate([value for value, _ in chosen])
        lanes = np.concatenate([lane for _, lane in chosen]) * PAIR


# -- sum -----------------------------------------------------------------------------------------------------------


def reduce_all_sum(
    core: Core, site: int, opcode: int, destination: Tensor, source: Tensor, temporary: Tensor, extent: Extent,
    repeat_stride: int,
) -> None:
    """The sum of all active lanes: by a binary tree inside a repeat, then over the repeats as the chip does it.

    The order is the vendor's: on 2201 the count form adds the repeats one after the other, the others by trees of a
    repeat's width; on 3510 the count form merges 2 to 4 repeats lane by lane first. Only trees use the temporary
    buffer. Without an active lane nothing is written.
    """
    _begin(core, site, opcode, source, extent)
    parts = read_parts(core, source, extent, (1, repeat_stride))
    if not parts:
        return
    saturate = core.registers.saturate
    order = _order(core.chip.arch, extent, REPEAT_BYTES // source.dtype.itemsize)
    if order == MERGED:
        total = _merged(np.concatenate([_filled(part) for part in parts]), saturate)
    else:
        sums = np.concatenate([fold(SUM, part.values, part.active, saturate) for part in parts])
        total = _in_order(sums, saturate) if order == IN_ORDER else _by_trees(core, temporary, sums, saturate)
    core.store(destination, contiguous(1, source.dtype.itemsize), total)


def _order(arch: str, extent: Extent, lanes: int) -> str:
    if extent.count < 0:
        return BY_TREE
    if arch == "2201":
        return IN_ORDER
    return MERGED if arch == IN_REGISTERS and lanes < extent.count <= MERGED_REPEATS * lanes else BY_TREE


def _filled(part: Part) -> Array:
    """A part's values with inactive lanes that add nothing."""
    if part.active is None:
        return part.values
    return np.where(part.active, part.values, neutral(SUM, part.values.dtype))


def _in_order(sums: Array, saturate: bool) -> Array:
    """One after the other, each partial sum rounded."""
    if not (saturate and sums.dtype == F16):
        return np.add.accumulate(sums)[-1:]
    total = sums[:1]
    for number in range(1, len(sums)):
        total = add(total, sums[number : number + 1], saturate)
    return total


def _merged(repeats: Array, saturate: bool) -> Array:
    """Neighbouring repeats added lane by lane until one is left, then its tree."""
    return tree_sum(tree_sum(repeats.T, saturate)[None, :], saturate)


def _by_trees(core: Core, temporary: Tensor, sums: Array, saturate: bool) -> Array:
    """Trees over a repeat's width of partial sums until one is left; all of them pass through the temporary buffer."""
    lanes = REPEAT_BYTES // sums.dtype.itemsize
    _keep(core, temporary, 0, sums)
    while len(sums) > 1:
        cut = [sums[start : start + lanes] for start in range(0, len(sums), lanes)]
        sums = np.array([tree_sum(part, saturate) for part in cut], sums.dtype)
        _keep(core, temporary, 0, sums)
    return sums
