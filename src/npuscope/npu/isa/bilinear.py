"""BilinearInterpolation: data blocks gathered, weighted and added up, library code that is one row of the trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.gather import ADDRESS_BITS, DATA_BLOCK, OFFSET_BYTES
from npuscope.npu.isa.lanes import MAX_REPEAT
from npuscope.npu.isa.vector import V
from npuscope.npu.layout import BLOCK, BLOCKS_PER_REPEAT, REPEAT_BYTES, bit_mask, contiguous, repeats
from npuscope.npu.numbers import compute_in_f32
from npuscope.npu.numbers.dtypes import Array
from npuscope.npu.tensor import Tensor

BILINEAR = opcode("bilinear_interpolation")
WEIGHTS_AT_ONCE = 8
"""Weights that the library broadcasts at a time (Brcb)."""


@dataclass(frozen=True, slots=True)
class Interpolation:
    """How often, with which weights, and where the results go.

    `horizontal` terms make a result, `vertical` results are made. With `per_block` each of the 8 blocks of a term has a
    weight of its own, else the term has one. `block_stride` of the destination is in data blocks, `vertical_offset`
    between results in elements. `mask` holds 64-bit mask words, None for all lanes.
    """

    mask: tuple[int, ...] | None
    horizontal: int
    vertical: int
    per_block: bool
    block_stride: int
    vertical_offset: int


def interpolate(
    core: Core, site: int, destination: Tensor, source: Tensor, offsets: Tensor, weights: Tensor, temporary: Tensor,
    plan: Interpolation,
) -> None:
    """Each result is the sum over `horizontal` terms of 8 gathered blocks times their weights.

    The steps and their roundings are those of the vendor's BilinearInterpolation page: gather by the byte `offsets`,
    multiply, add one term after the other, each rounded to half, and add 0 on the way to the destination.
    """
    itemsize = source.dtype.itemsize
    lanes = REPEAT_BYTES // itemsize
    terms = plan.horizontal * plan.vertical
    core.begin(site, V, BILINEAR, plan.horizontal, plan.vertical, work=terms * lanes)
    if terms <= 0:
        return
    named = core.load(offsets, contiguous(terms * BLOCKS_PER_REPEAT, OFFSET_BYTES)).astype(np.int64)
    starts = ((named + source.address) & ADDRESS_BITS) - source.address
    blocks = core.gather(source, starts, DATA_BLOCK).view(source.dtype).reshape(terms, BLOCKS_PER_REPEAT, -1)
    factors = _weights(core, weights, terms * BLOCKS_PER_REPEAT if plan.per_block else terms)
    products = _half(core, np.multiply, blocks, factors.reshape(terms, -1, 1))
    _keep(core, temporary, products, weights)
    totals = products.reshape(plan.vertical, plan.horizontal, BLOCKS_PER_REPEAT, -1)
    total = totals[:, 0]
    for term in range(1, plan.horizontal):
        total = _half(core, np.add, totals[:, term], total)
    mask = None if plan.mask is None else bit_mask(plan.mask, lanes)
    if mask is not None and not any(mask):
        return
    layout = repeats(
        plan.vertical, plan.block_stride, plan.vertical_offset * itemsize // BLOCK, itemsize,
        None if mask is None or all(mask) else mask,
    )
    core.store(destination, layout, total + source.dtype.type(0))


def _half(core: Core, function: np.ufunc, left: Array, right: Array) -> Array:
    return compute_in_f32(function, left, right, saturate=core.registers.saturate)


def _weights(core: Core, weights: Tensor, needed: int) -> Array:
    """The weights that take part; they are read 8 at a time."""
    read = -(-needed // WEIGHTS_AT_ONCE) * WEIGHTS_AT_ONCE
    return core.load(weights, contiguous(read, weights.dtype.itemsize))[:needed]


def _keep(core: Core, temporary: Tensor, products: Array, weights: Tensor) -> None:
    """The temporary buffer of 2201: the products, then each weight of the whole tensor over a data block.

    How many weights that are follows from the tensor's size, not from those that take part. Other chips use no buffer
    or one of another form.
    """
    if core.chip.arch != "2201":
        return
    itemsize = weights.dtype.itemsize
    spread = min(max(weights.length, 0) // WEIGHTS_AT_ONCE, MAX_REPEAT) * WEIGHTS_AT_ONCE
    factors = core.view(weights, contiguous(spread, itemsize))
    both = np.concatenate([products.reshape(-1), np.repeat(factors, BLOCK // itemsize)])
    core.store(temporary.cast(weights.dtype), contiguous(both.size, itemsize), both)
