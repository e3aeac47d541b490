"""The product of a base tile: the trace rows of its copies and its Mmad, and the accumulators in L0C.

For each base tile the cube core leaves, whatever the tiling's steps of K: a copy of A's and B's part from GM to L1
where it is not in L1 already (MTE2; a: rows, b: columns, as multiplied; work: bytes), a load of each into L0 (MTE1),
the same for the bias, and one Mmad (M; a, b, c: m, n, k; d: `trace.schema.TYPED`; work: multiply-accumulates). What
is in L0 is the library's own and has no accesses; a load says in d whether it is for L0A or L0B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.matmul_matrix import Source
from npuscope.ascendc.adv.matmul_object import Matmul, Tile
from npuscope.ascendc.adv.matmul_types import ORDER_N, ORDER_UNSET
from npuscope.errors import Unsupported
from npuscope.npu.core import READ, Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.numbers import Hf32Mode, to_hf32
from npuscope.npu.numbers.dtypes import F32, F64
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import ADDS, ELEMENT_TYPES, TYPED, Pipe, Space

M, MTE1, MTE2 = int(Pipe.M), int(Pipe.MTE1), int(Pipe.MTE2)
COPY_IN, LOAD, LOAD_BIAS = opcode("copy_gm_to_l1"), opcode("load_data"), opcode("copy_l1_to_bt")
MMAD = opcode("mmad")

I8, I32 = np.dtype(np.int8), np.dtype(np.int32)
EXACT_IN_F32 = 1 << 10
"""Sums of fewer int8 products than this stay below 2**24: 128 * 128 * K."""


def record_tile(state: Matmul, site: int, tile: Tile, adds: bool = False) -> None:
    """Leave the rows of a base tile up to its Mmad, which `adds` to what L0C holds or not; A and B must be set."""
    core, a, b = state.worker, state.a, state.b
    assert a is not None and b is not None
    held_a, held_b = _residency(state, tile)
    _record_operand(core, site, a, Space.L0A, held_a, tile.row, tile.k0, tile.rows, tile.k)
    _record_operand(core, site, b, Space.L0B, held_b, tile.k0, tile.column, tile.k, tile.columns)
    if state.bias is not None:
        _record_bias(core, site, state.bias, tile)
    told = _element(state.type.a.dtype) * TYPED + ADDS * adds
    core.begin(site, M, MMAD, tile.rows, tile.columns, tile.k, told, work=tile.rows * tile.columns * tile.k)


def _element(dtype: np.dtype[Any]) -> int:
    """The place of an element type in the trace's list."""
    return ELEMENT_TYPES.index(dtype.name) if dtype.name in ELEMENT_TYPES else 0


def _residency(state: Matmul, tile: Tile) -> tuple[bool, bool]:
    """Whether the tile's A and B are in L1 from an earlier tile of the walk.

    That needs all of K in L1 (stepKa or stepKb base blocks of K). Order M keeps one row of tiles of A and the step of N
    that is being walked, order N one column of B and the step of M.
    """
    tiling, k = state.settled(), state.shape.single_k
    order = state.type.config.get("iterate_order", ORDER_UNSET)
    slow_is_m = (tiling.iterateOrder if order == ORDER_UNSET else order) == ORDER_N
    keep_a, keep_b = tiling.stepKa * tiling.baseK >= k, tiling.stepKb * tiling.baseK >= k
    held_a, held_b = keep_a and tile.row in state.resident_a, keep_b and tile.column in state.resident_b
    for keep, held, resident, first, steps in (
        (keep_a, held_a, state.resident_a, tile.row, tiling.stepM if slow_is_m else 1),
        (keep_b, held_b, state.resident_b, tile.column, 1 if slow_is_m else tiling.stepN),
    ):
        if keep and not held:
            if len(resident) >= max(steps, 1):
                resident.clear()
            resident.add(first)
    return held_a, held_b


def _record_operand(
    core: Core, site: int, source: Source, target: Space, held: bool, row: int, column: int, rows: int, columns: int
) -> None:
    """Copy to L1 and load into L0 (`target`) of one operand's part; a scalar is made on the core and needs neither."""
    if source.tensor is None:
        return
    tensor, layout = source.part(row, column, rows, columns)
    nbytes = rows * columns * tensor.dtype.itemsize
    if source.space == Space.GM:
        if not held:
            core.begin(site, MTE2, COPY_IN, rows, columns, work=nbytes)
            if not source.private:
                core.note(READ, tensor, layout)
        core.begin(site, MTE1, LOAD, rows, columns, d=int(target), work=nbytes)
    else:
        core.begin(site, MTE1, LOAD, rows, columns, d=int(target), work=nbytes)
        core.note(READ, tensor, layout)


def bias_part(bias: Tensor, column: int, columns: int) -> tuple[Tensor, Any]:
    """The bias of some columns of the single core's C."""
    return shifted(bias, column * bias.dtype.itemsize), contiguous(columns, bias.dtype.itemsize)


def _record_bias(core: Core, site: int, bias: Tensor, tile: Tile) -> None:
    tensor, layout = bias_part(bias, tile.column, tile.columns)
    nbytes = tile.columns * bias.dtype.itemsize
    if bias.memory.space == Space.GM:
        core.begin(site, MTE2, COPY_IN, 1, tile.columns, work=nbytes)
        if bias.buffer >= 0:
            core.note(READ, tensor, layout)
        core.begin(site, MTE1, LOAD_BIAS, 1, tile.columns, work=nbytes)
    else:
        core.begin(site, MTE1, LOAD_BIAS, 1, tile.columns, work=nbytes)
        core.note(READ, tensor, layout)


def accumulators(state: Matmul, tile: Tile) -> np.ndarray:
    """The tile's product as L0C holds it, (rows, columns): int32 for int8 operands, float32 else, without the bias."""
    core, a, b = state.worker, state.a, state.b
    assert a is not None and b is not None
    integer = state.type.a.dtype == I8
    kind = F32 if not integer or tile.k < EXACT_IN_F32 else F64
    left = a.values(core, tile.row, tile.k0, tile.rows, tile.k, kind)
    right = b.values(core, tile.k0, tile.column, tile.k, tile.columns, kind)
    if core.registers.hf32 and state.type.a.dtype == F32:
        mode = Hf32Mode.NEAREST_ZERO if core.registers.hf32_toward_zero else Hf32Mode.NEAREST_EVEN
        left, right = to_hf32(left, mode), to_hf32(right, mode)
    product = np.matmul(left, right)
    return product.astype(np.int64).astype(I32) if integer else product


def add_bias(state: Matmul, tile: Tile, product: np.ndarray) -> np.ndarray:
    """The accumulators with the bias that initialised them; int32 wraps."""
    if state.bias is None:
        return product
    if state.type.config.get("is_partial_output"):
        raise Unsupported("Matmul: a bias with is_partial_output is not simulated; add it afterwards")
    values = state.worker.view(*bias_part(state.bias, tile.column, tile.columns))
    return product + values.astype(product.dtype)


def compute_tile(state: Matmul, site: int, tile: Tile, partial_sum: bool) -> np.ndarray:
    """Rows and accumulators of a base tile; with `partial_sum` added to what L0C holds, and no bias."""
    record_tile(state, site, tile, partial_sum and state.accumulator is not None)
    product = accumulators(state, tile)
    if not partial_sum:
        return add_bias(state, tile, product)
    held = state.accumulator
    return product if held is None or held.shape != product.shape else held + product
