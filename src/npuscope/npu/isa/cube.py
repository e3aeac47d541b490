"""Mmad: matrix multiplication with accumulation in L0C (hardware.md 5).

C[m, n] = init + A[m, k] B[k, n]. A lies in L0A in fractals row by row (Zz; column by column, Nz, on NPU arch 3510), B
in L0B in fractals row by row with the k elements of a column together (Zn), C in L0C in columns of 16 elements (Nz).
What m, n and k leave of the last fractals is ignored in A and B and left alone in C.

float accumulates in float32: one float32 matrix product of the widened operands, then one addition of the initial
value. The device's order of additions is not published, so results may differ from it in the last bits. Integers are
exact and saturate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from npuscope.errors import UserError
from npuscope.npu.core import READ, WRITE, Core, opcode
from npuscope.npu.isa.fractal import FRACTAL, ROWS, as_stored, columns_of
from npuscope.npu.isa.move import COUNT_LIMIT, bounded
from npuscope.npu.layout import Layout, contiguous, strided
from npuscope.npu.numbers import Hf32Mode, round_to_float, to_hf32, type_name, unpack_int4
from npuscope.npu.numbers.dtypes import FP8_E4M3, FP8_E5M2, INT4
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

M = int(Pipe.M)
MMAD, MMAD_SPARSE = opcode("mmad"), opcode("mmad_sparse")
SPARSE_INDEX = "sparse_index"
"""Register file: the index matrix that LoadDataWithSparse leaves beside L0B, one byte for four bytes of L0B."""

_TYPES: dict[str, frozenset[tuple[str, str, str]]] = {
    "2201": frozenset(
        {
            ("int8_t", "int8_t", "int32_t"), ("half", "half", "float"), ("float", "float", "float"),
            ("bfloat16_t", "bfloat16_t", "float"), ("int4b_t", "int4b_t", "int32_t"),
        }
    ),
    "3510": frozenset(
        {
            ("int8_t", "int8_t", "int32_t"), ("half", "half", "float"), ("float", "float", "float"),
            ("bfloat16_t", "bfloat16_t", "float"),
            *((type_name(a), type_name(b), "float") for a in (FP8_E4M3, FP8_E5M2) for b in (FP8_E4M3, FP8_E5M2)),
        }
    ),
    "2002": frozenset(
        {
            ("int8_t", "int8_t", "int32_t"), ("uint8_t", "int8_t", "int32_t"), ("uint8_t", "uint8_t", "int32_t"),
            ("half", "half", "half"), ("half", "half", "float"), ("int4b_t", "int4b_t", "int32_t"),
        }
    ),
}
"""(A, B, C) types by architecture (vendor's Mmad page)."""

_EXACT_K = 1024
"""Up to this k, sums of 8-bit products stay below 2**24 and float32 is exact in any order."""


@dataclass(frozen=True, slots=True)
class Multiply:
    """Operands of Mmad: sizes, initial value (zero; or with `from_bias` the bias row; else what L0C holds), unit flag,
    whether k of float is aligned to 16 instead of 8 in A and B, and whether m = 1 still reads A in fractals."""

    m: int
    n: int
    k: int
    zero: bool = True
    from_bias: bool = False
    unit_flag: int = 0
    k_aligned: bool = False
    no_gemv: bool = False


def multiply(
    core: Core, site: int, target: Tensor, left: Tensor, right: Tensor, bias: Tensor | None, shape: Multiply
) -> None:
    """One Mmad. `bias` (n elements of the target's type in BT; None: the start of BT) is read where the shape says so.

    Raises UserError for element types that the chip does not take. m, n or k of 0 is no operation.
    """
    types = (type_name(left.dtype), type_name(right.dtype), type_name(target.dtype))
    if types not in _TYPES.get(core.chip.arch, frozenset()):
        raise UserError(f"Mmad cannot multiply {types[0]} by {types[1]} into {types[2]} on {core.chip.name}")
    sized = _begin(core, site, MMAD, shape)
    if sized is None:
        return
    m, n, k = sized
    a = _left(core, left, m, k, shape)
    b = _right(core, right, k, n)
    _finish(core, site, target, _product(core, a, b, left.dtype, right.dtype), bias, shape)


def multiply_sparse(core: Core, site: int, target: Tensor, left: Tensor, right: Tensor, shape: Multiply) -> None:
    """One MmadWithSparse: B holds two of every four elements along k (k / 2 x n, int8), and the index matrix beside it
    says which; A is whole (vendor's MmadWithSparse page). Raises UserError for other types than int8 into int32."""
    types = (type_name(left.dtype), type_name(right.dtype), type_name(target.dtype))
    if types != ("int8_t", "int8_t", "int32_t"):
        raise UserError(f"MmadWithSparse takes int8_t, int8_t, int32_t, not {', '.join(types)}")
    sized = _begin(core, site, MMAD_SPARSE, shape)
    if sized is None:
        return
    m, n, k = sized
    if k % 4:
        core.fault("bad_operand", what="k of MmadWithSparse", value=k, limit="a multiple of 4")
        k -= k % 4
    if k == 0:
        return
    a = _left(core, left, m, k, Multiply(m, n, k, no_gemv=True))
    b = _right(core, right, k // 2, n)
    product = _product(core, a, _spread(b, _chosen(core, right, k // 2, n), k), left.dtype, right.dtype)
    _finish(core, site, target, product, None, shape)


def _begin(core: Core, site: int, code: int, shape: Multiply) -> tuple[int, int, int] | None:
    core.begin(site, M, code, shape.m, shape.n, shape.k, shape.unit_flag, work=shape.m * shape.n * shape.k)
    bounded(core, "unit flag of Mmad", shape.unit_flag, 3)
    m = bounded(core, "m of Mmad", shape.m, COUNT_LIMIT)
    n = bounded(core, "n of Mmad", shape.n, COUNT_LIMIT)
    k = bounded(core, "k of Mmad", shape.k, COUNT_LIMIT)
    return (m, n, k) if m and n and k else None


# -- operands --------------------------------------------------------------------------------------------------------


def _blocks_of_k(dtype: np.dtype[Any], k: int, aligned: bool) -> int:
    """Fractals along k: with `aligned` (kDirectionAlign, float only) an even number of them is laid out."""
    blocks = -(-k // columns_of(dtype))
    return blocks + blocks % 2 if aligned and dtype == np.float32 else blocks


@lru_cache(maxsize=1024)
def _grid(outer: int, inner: int, outer_step: int, inner_step: int, lanes: int, size: int) -> Layout:
    """Fractals of 16 rows of `lanes` elements, `outer` x `inner` of them, steps in fractals."""
    return strided(
        (outer, inner, ROWS, lanes), (outer_step * FRACTAL, inner_step * FRACTAL, lanes * size, size), size
    )


@lru_cache(maxsize=1024)
def _valid(
    rows: int, blocks: int, tail: int, row_step: int, block_step: int, lanes: int, size: int
) -> tuple[tuple[int, Layout], ...]:
    """What is read of a grid of fractals, as (byte offset, layout): `rows` rows of `blocks` blocks of `lanes` elements,
    the last of which has only `tail`. Steps in fractals."""
    spans = [(0, blocks, lanes)] if tail == lanes else [(0, blocks - 1, lanes), (blocks - 1, 1, tail)]
    found = []
    for row, row_count, height in _spans(rows, ROWS):
        for block, block_count, width in spans:
            if block_count == 0:
                continue
            loops = sorted([(row_step * FRACTAL, row_count), (block_step * FRACTAL, block_count)], reverse=True)
            layout = strided(
                (*(count for _, count in loops), height, width), (*(step for step, _ in loops), lanes * size, size),
                size
            )
            found.append(((row * row_step + block * block_step) * FRACTAL, layout))
    return tuple(found)


def _spans(extent: int, height: int) -> list[tuple[int, int, int]]:
    whole, rest = divmod(extent, height)
    return ([(0, whole, height)] if whole else []) + ([(whole, 1, rest)] if rest else [])


def _note(core: Core, tensor: Tensor, pieces: tuple[tuple[int, Layout], ...]) -> None:
    accesses, row = core.recorder.accesses, core.row
    for offset, layout in pieces:
        accesses.extend((row, READ, tensor.buffer, tensor.address + offset, layout.number))


def _left(core: Core, tensor: Tensor, m: int, k: int, shape: Multiply) -> np.ndarray:
    """A as (m, k). With m = 1 it is one contiguous row (GEMV), unless that is off or, on NPU arch 3510, asked not
    to."""
    packed = tensor.dtype == INT4
    stored = as_stored(tensor)
    size, lanes = stored.dtype.itemsize, columns_of(stored.dtype)
    units = -(-k // 2) if packed else k  # elements of `stored` along k
    if m == 1 and not shape.no_gemv:
        values = core.load(stored, contiguous(units, size)).reshape(1, units)
    else:
        blocks = _blocks_of_k(tensor.dtype, k, shape.k_aligned)
        fractal_rows, used = -(-m // ROWS), -(-k // columns_of(tensor.dtype))
        row_step, block_step = (1, fractal_rows) if core.chip.arch == "3510" else (blocks, 1)
        tail = units - (used - 1) * lanes
        _note(core, tensor, _valid(m, used, tail, row_step, block_step, lanes, size))
        grid = core.view(stored, _grid(fractal_rows, used, row_step, block_step, lanes, size))
        values = grid.transpose(0, 2, 1, 3).reshape(fractal_rows * ROWS, used * lanes)[:m, :units]
    return unpack_int4(np.ascontiguousarray(values))[:, :k] if packed else values


def _right(core: Core, tensor: Tensor, k: int, n: int) -> np.ndarray:
    """B transposed, as (n, k)."""
    packed = tensor.dtype == INT4
    stored = as_stored(tensor)
    size, lanes = stored.dtype.itemsize, columns_of(stored.dtype)
    units = -(-k // 2) if packed else k
    fractal_rows, used = -(-n // ROWS), -(-k // columns_of(tensor.dtype))
    _note(core, tensor, _valid(n, used, units - (used - 1) * lanes, 1, fractal_rows, lanes, size))
    grid = core.view(stored, _grid(used, fractal_rows, fractal_rows, 1, lanes, size))
    values = grid.transpose(1, 2, 0, 3).reshape(fractal_rows * ROWS, used * lanes)[:n, :units]
    return unpack_int4(np.ascontiguousarray(values))[:, :k] if packed else values


def _chosen(core: Core, right: Tensor, k: int, n: int) -> np.ndarray:
    """Which element of A along k each element of the dense B goes with: (n, k) indices into A's k.

    Two bits an element, low bits first, in fractals like B's. The first of a pair counts from the group's first
    element, the second from its second, and takes the first one's element where it would lie before it.
    """
    store: Any = core.registers.values.get(SPARSE_INDEX)
    fractal_rows, used = -(-n // ROWS), -(-k // 32)
    first = (right.address - right.memory.base) // 4
    raw = np.zeros(fractal_rows * used * 128, np.uint8)
    if store is not None:
        part = store[first : first + raw.size]
        raw[: part.size] = part
    bits = (raw[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).reshape(used, fractal_rows * ROWS, 32)
    index = bits.transpose(1, 0, 2).reshape(fractal_rows * ROWS, used * 32)[:n, :k].astype(np.int64)
    group = np.arange(k, dtype=np.int64) // 2 * 4
    index[:, 1::2] = np.maximum(index[:, 1::2] + 1, index[:, 0::2])
    return index + group


def _spread(dense: np.ndarray, chosen: np.ndarray, k: int) -> np.ndarray:
    """The dense B (n, k / 2) with its elements at their places in (n, k); a place that a pair names twice gets the
    sum."""
    whole = np.zeros((dense.shape[0], k), np.int16)
    rows = np.arange(dense.shape[0])[:, None]
    whole[rows, chosen[:, 0::2]] = dense[:, 0::2]
    whole[rows, chosen[:, 1::2]] += dense[:, 1::2]
    return whole


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _product(core: Core, a: np.ndarray, b: np.ndarray, left: np.dtype[Any], right: np.dtype[Any]) -> np.ndarray:
    """A (m, k) times B given as (n, k): float32, or int64 for integers."""
    if left.kind in "iu" or left == INT4:
        kind = np.float32 if a.shape[1] <= _EXACT_K else np.float64  # BLAS is exact here and far faster than integers
        return (_wide(a, kind) @ _wide(b, kind).T).astype(np.int64)
    if left == np.float32 and core.registers.hf32:
        mode = Hf32Mode.NEAREST_ZERO if core.registers.hf32_toward_zero else Hf32Mode.NEAREST_EVEN
        bits = 10 if core.chip.arch == "3510" else 11
        a, b = to_hf32(a, mode, mantissa_bits=bits), to_hf32(b, mode, mantissa_bits=bits)
    return np.asarray(_wide(a, np.float32) @ _wide(b, np.float32).T)


def _wide(values: np.ndarray, kind: Any) -> np.ndarray:
    """`values` in the type that BLAS multiplies; 16-bit floats by ways that are faster than numpy's cast."""
    if values.dtype == np.float16 and kind == np.float32:
        return _halves().take(values.view(np.uint16))
    if values.dtype == ml_dtypes.bfloat16 and kind == np.float32:
        return (np.ascontiguousarray(values).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return values.astype(kind)


@cache
def _halves() -> np.ndarray:
    """The float32 value of every half, by its bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _finish(
    core: Core, site: int, target: Tensor, product: np.ndarray, bias: Tensor | None, shape: Multiply
) -> None:
    """Add the initial value and write C."""
    m, n = product.shape
    size = target.dtype.itemsize
    columns, rows = -(-n // ROWS), -(-m // ROWS) * ROWS
    grid = strided((columns, rows, ROWS), (rows * ROWS * size, ROWS * size, size), size)
    whole = contiguous(columns * rows * ROWS, size)
    if shape.zero:
        result = product
    elif shape.from_bias:
        result = product + _bias(core, site, bias, target, n).astype(product.dtype)
    else:
        core.note(READ, target, whole)
        old = core.view(target, grid).transpose(1, 0, 2).reshape(rows, columns * ROWS)[:m, :n]
        result = product + old.astype(product.dtype)
    core.note(WRITE, target, whole)
    _put(core, target, grid, _narrow(core, result, target.dtype))


def _bias(core: Core, site: int, bias: Tensor | None, target: Tensor, n: int) -> np.ndarray:
    if bias is None:
        number = core.raw_tensor(Space.BT, 0, n * target.dtype.itemsize, site, "", target.dtype.name)
        bias = Tensor(core.memories[Space.BT], 0, target.dtype, number, n)
    return core.load(bias, contiguous(n, bias.dtype.itemsize))


def _narrow(core: Core, result: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """`result` as C's type: integers saturate, floats too with CTRL[48] clear (vendor's Mmad page)."""
    if dtype == np.int32:
        return np.clip(result, -(2**31), 2**31 - 1).astype(np.int32)
    if dtype == np.float32:
        if core.registers.saturate:
            return np.nan_to_num(result, nan=0.0)
        return result
    return round_to_float(result, dtype, saturate=core.registers.saturate)


def _put(core: Core, target: Tensor, grid: Layout, values: np.ndarray) -> None:
    """Write (m, n) values to the columns of L0C."""
    m, n = values.shape
    columns, rows, _ = grid.shape
    if m < rows or n < columns * ROWS:
        old = core.view(target, grid)
        filled = old.transpose(1, 0, 2).reshape(rows, columns * ROWS).copy()
        filled[:m, :n] = values
        values = filled
    core.put(target, grid, values.reshape(rows, columns, ROWS).transpose(1, 0, 2))
