"""C on its way out of L0C: conversion, quantisation, placement in GM or on chip, atomics.

Fixpipe leaves one row for each base tile (FIX; a: rows, b: columns; work: bytes). On chips whose AIC cannot reach the
UB (all but 3510), C in UB goes through the library's own room in GM: the vector core then leaves the copy into UB
(MTE2) and the framework's MTE2_V flag.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npuscope.ascendc.adv.kfc import ready_in_ub
from npuscope.ascendc.adv.matmul_compute import COPY_IN, I8, I32, MTE2
from npuscope.ascendc.adv.matmul_matrix import FRACTAL, aligned, nd_part, nz_part
from npuscope.ascendc.adv.matmul_object import Matmul, Outgoing, Tile
from npuscope.ascendc.adv.matmul_types import NZ
from npuscope.errors import UserError
from npuscope.npu.core import READ, WRITE, Core, opcode
from npuscope.npu.layout import Layout, contiguous
from npuscope.npu.numbers import (
    add,
    compute_in_f32,
    dequantise_f16,
    encode_quant_word,
    narrow_f32,
    quantise_f32_to_b8,
    requantise,
    type_name,
)
from npuscope.npu.numbers.dtypes import BF16, F16, F32, is_floating
from npuscope.npu.tensor import DType, Tensor, shifted
from npuscope.trace.schema import Pipe, Role, Space

FIX = int(Pipe.FIX)
FIXPIPE, COPY_TO_UB = opcode("fixpipe"), opcode("copy_gm_to_ub")
ATOMIC = int(Role.ATOMIC)
U8 = np.dtype(np.uint8)
ATOMICS = (None, "add", "max", "min")
"""en_atomic of get_tensor_c and iterate_all -> operation (the vendor's GetTensorC page)."""


def write_tile(
    state: Matmul, site: int, destination: Tensor, tile: Tile, product: np.ndarray,
    sequential: bool, atomic: int, stride: int = 0,
) -> None:  # fmt: skip
    """Move a tile's accumulators out. Sequential: the tile alone, row after row from the tensor's start. Otherwise at
    the tile's place in C, whose rows are `stride` elements apart (0: the row length of the whole C). A tile for the UB
    may have to be fetched with `deliver`."""
    core = state.worker
    values = converted(state, site, product, destination.dtype, tile.column)
    row, column = (0, 0) if sequential else (tile.row, tile.column)
    tensor, layout, values = _placed(state, destination, row, column, values, sequential, stride)
    core.begin(site, FIX, FIXPIPE, tile.rows, tile.columns, work=values.size * values.itemsize)
    if _through_gm(state, tensor):
        state.outgoing.append(Outgoing(tensor, layout, values))
    elif operation := _atomic(core, tensor, atomic):
        core.note(ATOMIC, tensor, layout)
        core.put(tensor, layout, combined(operation, core.view(tensor, layout), values))
    else:
        core.store(tensor, layout, values)


def _through_gm(state: Matmul, tensor: Tensor) -> bool:
    chip = state.client.chip
    return tensor.memory.space == Space.UB and chip.split and chip.arch != "3510"


def deliver(state: Matmul, site: int) -> None:
    """The vector core fetches the tiles that `write_tile` left in the library's room in GM."""
    core = state.client
    for tensor, layout, values in state.outgoing:
        core.begin(site, MTE2, COPY_TO_UB, work=values.size * values.itemsize)
        core.store(tensor, layout, values)
        ready_in_ub(core, site, tensor)
    state.outgoing.clear()


def copy_cached(core: Core, site: int, destination: Tensor, source: Tensor, count: int) -> None:
    """Fetch `count` elements that lie one after the other in GM."""
    layout = contiguous(count, source.dtype.itemsize)
    core.begin(site, MTE2, COPY_TO_UB, work=count * source.dtype.itemsize)
    core.note(READ, source, layout)
    core.store(destination, layout, core.view(source, layout))


def _placed(
    state: Matmul, destination: Tensor, row: int, column: int, values: np.ndarray, sequential: bool, stride: int
) -> tuple[Tensor, Layout, np.ndarray]:
    """Where the values of a tile go: tensor, layout, and the values shaped like the layout."""
    rows, columns = values.shape
    if state.type.c.format != NZ:
        length = columns if sequential else stride or state.shape.c_stride
        return *nd_part(destination, row, column, rows, columns, length), values
    split = bool(state.type.config.get("is_enable_channel_split"))
    width = 8 if split else 32 if destination.dtype.itemsize == 1 else FRACTAL
    height = aligned(rows, FRACTAL) if sequential else state.shape.m
    if split:
        height = aligned(height, FRACTAL)
    blocks = range(column // width, -(-(column + columns) // width))
    padded = np.zeros((rows, len(blocks) * width), values.dtype)
    padded[:, :columns] = values
    tensor, layout = nz_part(destination, row, blocks, rows, height, width)
    return tensor, layout, padded.reshape(rows, len(blocks), width).transpose(1, 0, 2)


def _atomic(core: Core, tensor: Tensor, asked: int) -> str | None:
    """The operation of an atomic write to GM: what the call asks for, which also ends one that was set before."""
    if tensor.memory.space != Space.GM:
        return None
    if not asked:
        return core.registers.atomic_operation
    core.registers.atomic_operation = None
    return ATOMICS[asked] if 0 < asked < len(ATOMICS) else None


def combined(operation: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """What an atomic write leaves; half and bfloat16 are added in float32 and rounded once, integers wrap."""
    compute: Any = {"add": np.add, "max": np.maximum, "min": np.minimum}[operation]
    if is_floating(new.dtype):
        return compute_in_f32(compute, old, new)
    return add(old, new) if operation == "add" else compute(old, new)


def converted(state: Matmul, site: int, product: np.ndarray, dtype: DType, column: int) -> np.ndarray:
    """Accumulators as the element type of C (hardware.md 5): float32 kept or narrowed, int32 kept, either quantised.

    Raises UserError for a pair of types that Fixpipe does not convert.
    """
    saturate = state.worker.registers.saturate
    if product.dtype == dtype:
        return product
    if product.dtype == F32 and dtype in (F16, BF16):
        return narrow_f32(product, dtype, saturate=saturate)
    convert: Any = None
    if product.dtype == F32 and dtype in (I8, U8):
        convert = quantise_f32_to_b8
    elif product.dtype == I32 and dtype == F16:
        return dequantise_f16(product, _words(state, site, column, product.shape[1]), saturate=saturate)
    elif product.dtype == I32 and dtype in (I8, U8):
        convert = requantise
    if convert is None:
        kinds = f"{type_name(state.type.a.dtype)} x {type_name(state.type.b.dtype)} -> {type_name(dtype)}"
        raise UserError(f"Matmul {kinds} does not exist: the accumulators are {type_name(product.dtype)}")
    words = _words(state, site, column, product.shape[1])
    sign = np.uint64(1 << 46)  # the result's type decides, not the word's sign flag (SetQuantScalar page)
    return convert(product, words | sign if dtype == I8 else words & ~sign)


def _words(state: Matmul, site: int, column: int, columns: int) -> np.ndarray:
    """The quantisation words of some columns; a vector in GM is copied in, in L1 it is there already."""
    core, quant = state.worker, state.quant
    if quant is None:
        core.site = site
        core.fault(
            "bad_operand", what="the quantisation of C", value="not set",
            limit="set_quant_scalar or set_quant_vector before iterate",
        )  # fmt: skip
        return encode_quant_word(1.0)
    if isinstance(quant, int):
        return np.asarray(quant & 0xFFFF_FFFF_FFFF_FFFF, np.uint64)
    tensor, layout = shifted(quant, column * 8), contiguous(columns, 8)
    if tensor.memory.space == Space.GM:
        core.begin(site, MTE2, COPY_IN, 1, columns, work=columns * 8)
        core.note(READ, tensor, layout)
    return core.view(tensor, layout).view(np.uint64)


def write_accumulators(state: Matmul, destination: Tensor, tile: Tile, product: np.ndarray) -> None:
    """Keep a tile in L0C that the kernel manages itself (Iterate with localCmatrix): NZ, fractals of 16 x 16. It is the
    Mmad that writes, so the access belongs to the row last begun."""
    rows, columns = product.shape
    blocks = range(0, -(-columns // FRACTAL))
    padded = np.zeros((rows, len(blocks) * FRACTAL), product.dtype)
    padded[:, :columns] = product
    tensor, layout = nz_part(destination, 0, blocks, rows, aligned(rows, FRACTAL), FRACTAL)
    core = state.worker
    core.note(WRITE, tensor, layout)
    core.put(tensor, layout, padded.reshape(rows, len(blocks), FRACTAL).transpose(1, 0, 2))
