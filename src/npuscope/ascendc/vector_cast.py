"""Type conversion on the vector unit: Cast, CastDequant and SetDeqScale (vendor's pages of the three)."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.ascendc.vector_levels import (
    WIDE_ARCH,
    Instruction,
    check_mask,
    check_repeat,
    count_level,
    has_vector_unit,
    repeat_times,
    set_mask,
    strided_level,
    type_error,
    unary_strides,
)
from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.arithmetic import F16, F32, I8, I16, I32, U8, U16, U32, Compute, Pair, Types
from npuscope.npu.isa.dequantise import REGISTER, VECTOR_BUFFER, WORDS, dequantise_to_bytes, half_scale
from npuscope.npu.isa.vector import (
    DENSE,
    Extent,
    Strides,
    as_element,
    count_extent,
    current_extent,
    elementwise,
    elementwise_count,
)
from npuscope.npu.layout import BLOCK, contiguous
from npuscope.npu.numbers import RoundMode, cast_dequant_f16, cast_modes, convert, encode_quant_word, type_name
from npuscope.npu.numbers.dtypes import BF16, FP8_E4M3, FP8_E5M2, INT4, DType
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe

FIELDS.update({"vdeq_info": {"vdeq_scale": (), "vdeq_offset": (), "vdeq_sign_mode": ()}})

VCONV, VDEQ, SET_SCALE = opcode("vconv"), opcode("vconv_deq"), opcode("set_deq_scale")
S = int(Pipe.S)
_NONE = frozenset({RoundMode.NONE})
_ROUNDED = frozenset({RoundMode.RINT, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.ROUND, RoundMode.TRUNC})

_WIDER: dict[tuple[DType, DType], frozenset[RoundMode]] = {
    (I8, I16): _NONE, (I8, I32): _NONE, (U8, U16): _NONE, (U8, U32): _NONE,
    (I16, U8): _NONE, (I16, I32): _NONE, (I16, U32): _NONE, (U16, U8): _NONE, (U16, U32): _NONE,
    (I32, U8): _NONE, (I32, U16): _NONE, (U32, U8): _NONE, (U32, I16): _NONE, (U32, U16): _NONE,
    (F16, BF16): _ROUNDED, (BF16, F16): _ROUNDED,
    (FP8_E5M2, F32): _NONE, (FP8_E4M3, F32): _NONE,
    (F32, FP8_E5M2): frozenset({RoundMode.RINT}), (F32, FP8_E4M3): frozenset({RoundMode.RINT}),
}
"""(source, destination) pairs that NPU arch 3510 adds, with their modes."""

_SCALED: Types = (F16, I32)
_EVERY_TYPE = tuple({source: None for source, _ in _WIDER} | {BF16: None, F32: None, np.dtype(np.int64): None})


def modes_on(core: Core, source: DType, destination: DType) -> frozenset[RoundMode]:
    """Rounding modes of a Cast of this pair on the core's chip; empty where there is no such Cast."""
    modes = cast_modes(source, destination)
    if core.chip.arch == WIDE_ARCH:
        modes |= _WIDER.get((source, destination), frozenset())
    return modes


@lru_cache(maxsize=512)
def conversion(source: DType, destination: DType, mode: RoundMode, saturate: bool) -> Compute:
    """What a Cast computes; int32 -> half also takes the scale of SetDeqScale."""
    if (destination, source) == _SCALED:
        return partial(cast_dequant_f16, saturate=saturate)
    return lambda values: convert(values, destination, mode, saturate=saturate)


def _cast(core: Core, dst: Tensor, src: Tensor, round_mode: int) -> tuple[Compute, tuple[Any, ...]]:
    """The computation of a Cast and its scalar operands. Raises UserError for a pair or a mode that is none."""
    source, destination = src.dtype, dst.dtype
    if INT4 in (source, destination):
        raise Unsupported("ascendc.cast of int4b_t is not simulated; cast through int8_t instead")
    mode = RoundMode(round_mode)
    modes = modes_on(core, source, destination)
    if not modes:
        taken: list[Types] = [(other, source) for other in _EVERY_TYPE if modes_on(core, source, other)]
        raise type_error(core, "cast", (destination, source), taken)
    if mode not in modes:
        names = ", ".join(f"CAST_{known.name}" for known in sorted(modes))
        raise UserError(
            f"ascendc.cast does not round {type_name(source)} to {type_name(destination)} with CAST_{mode.name} on "
            f"{core.chip.name}; it takes {names}"
        )
    scalars = (half_scale(core),) if (destination, source) == _SCALED else ()
    return conversion(source, destination, mode, core.registers.saturate), scalars


@operation("ascendc.cast_l2")
def cast_l2(core: Core, site: int, dst: Tensor, src: Tensor, count: int, *, round_mode: int) -> None:
    """Cast of `count` elements."""
    if has_vector_unit(core):
        compute, scalars = _cast(core, dst, src, round_mode)
        elementwise_count(core, site, VCONV, compute, dst, (src,), count, scalars=scalars)


@operation("ascendc.cast_l0")
def cast_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int, repeat: int, params: Record,
    *, round_mode: int, is_set_mask: bool = False,
) -> None:
    """Cast of repeats; a repeat has as many elements as fit of the wider type."""
    _strided_cast(core, site, dst, src, mask if is_set_mask else None, repeat, params, round_mode)


@operation("ascendc.cast_l1", variadic=("mask",))
def cast_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: list[int], repeat: int, params: Record,
    *, round_mode: int, is_set_mask: bool = False,
) -> None:
    """Cast of repeats under mask bits."""
    _strided_cast(core, site, dst, src, mask if is_set_mask else None, repeat, params, round_mode)


def _strided_cast(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int | list[int] | None, repeat: int, params: Record,
    round_mode: int,
) -> None:
    if not has_vector_unit(core):
        return
    compute, scalars = _cast(core, dst, src, round_mode)
    itemsize = max(dst.dtype.itemsize, src.dtype.itemsize)
    if mask is not None:
        set_mask(core, mask, itemsize)
    extent = current_extent(core, repeat_times(repeat))
    elementwise(core, site, VCONV, compute, dst, (src,), extent, unary_strides(params), scalars=scalars)
    check_repeat(core, repeat)
    if mask is not None:
        check_mask(core, mask, itemsize)


# -- CastDequant -----------------------------------------------------------------------------------------------------

_BYTES: tuple[Types, ...] = ((I8, I16), (U8, I16))
_TO_HALF = Instruction(
    "cast_deq", "vconv_deq", {_SCALED: Pair(cast_dequant_f16, partial(cast_dequant_f16, saturate=True))}
)


def _to_bytes(core: Core, dst: Tensor, src: Tensor) -> bool:
    """Whether this CastDequant gives bytes (else half). Raises UserError for types that it does not take."""
    types = (dst.dtype, src.dtype)
    if types not in (*_BYTES, _SCALED):
        raise type_error(core, "cast_deq", types, [*_BYTES, _SCALED])
    return types != _SCALED


@operation("ascendc.cast_deq_l2")
def cast_deq_l2(
    core: Core, site: int, dst: Tensor, src: Tensor, count: int, *, is_vec_deq: bool = False, half_block: bool = False
) -> None:
    """CastDequant of `count` elements; `half_block`: bytes go to the second half of each destination block."""
    if not has_vector_unit(core):
        return
    if not _to_bytes(core, dst, src):
        count_level(core, site, _TO_HALF, dst, (src,), count, (half_scale(core),))
        return
    extent = count_extent(core, count)
    _bytes(core, site, dst, src, extent, (DENSE, DENSE), is_vec_deq, half_block)
    if count < 0:
        core.fault("bad_operand", what="the element count", value=count, limit="0 or more")


@operation("ascendc.cast_deq_l0")
def cast_deq_l0(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int, repeat: int, params: Record,
    *, is_set_mask: bool = False, is_vec_deq: bool = False, half_block: bool = False,
) -> None:
    """CastDequant of repeats."""
    _strided_deq(core, site, dst, src, mask if is_set_mask else None, repeat, params, is_vec_deq, half_block)


@operation("ascendc.cast_deq_l1", variadic=("mask",))
def cast_deq_l1(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: list[int], repeat: int, params: Record,
    *, is_set_mask: bool = False, is_vec_deq: bool = False, half_block: bool = False,
) -> None:
    """CastDequant of repeats under mask bits."""
    _strided_deq(core, site, dst, src, mask if is_set_mask else None, repeat, params, is_vec_deq, half_block)


def _strided_deq(
    core: Core, site: int, dst: Tensor, src: Tensor, mask: int | list[int] | None, repeat: int, params: Record,
    vector: bool, upper: bool,
) -> None:
    if not has_vector_unit(core):
        return
    strides = unary_strides(params)
    if not _to_bytes(core, dst, src):
        strided_level(core, site, _TO_HALF, dst, (src,), mask, repeat, strides, (half_scale(core),))
        return
    if mask is not None:
        set_mask(core, mask, src.dtype.itemsize)
    _bytes(core, site, dst, src, current_extent(core, repeat_times(repeat)), strides, vector, upper)
    check_repeat(core, repeat)
    if mask is not None:
        check_mask(core, mask, src.dtype.itemsize)


def _bytes(
    core: Core, site: int, dst: Tensor, src: Tensor, extent: Extent, strides: tuple[Strides, Strides], vector: bool,
    upper: bool,
) -> None:
    dequantise_to_bytes(core, site, VDEQ, dst, src, extent, strides, vector=vector, upper=upper)


# -- SetDeqScale -----------------------------------------------------------------------------------------------------


@operation("ascendc.set_deq_scale")
def set_deq_scale(
    core: Core, site: int, scale: Any, offset: int | None = None, sign_mode: int | None = None
) -> None:
    """SetDeqScale(half scale), or (float scale, offset, signMode) for int16 -> 8 bits."""
    if not has_vector_unit(core):
        return
    if offset is None:
        word = int(np.asarray(as_element(scale, F16)).view(np.uint16))
        core.begin(site, S, SET_SCALE, word)
    else:
        core.begin(site, S, SET_SCALE)
        word = _word(core, scale, offset, bool(sign_mode))
    core.registers.values[REGISTER] = word


@operation("ascendc.set_deq_scale_l4")
def set_deq_scale_l4(core: Core, site: int, vdeq: Tensor, info: Record) -> None:
    """SetDeqScale(vdeq, VdeqInfo): the scalar unit writes 16 words to `vdeq` and sets the register to its address."""
    if not has_vector_unit(core):
        return
    address = vdeq.address // BLOCK
    core.begin(site, S, SET_SCALE, address)
    groups = zip(info.vdeq_scale, info.vdeq_offset, info.vdeq_sign_mode, strict=True)
    words = [_word(core, scale, offset, bool(sign)) for scale, offset, sign in groups]
    core.store(vdeq.cast(np.dtype(np.uint64)), contiguous(WORDS, 8), np.array(words, np.uint64))
    core.registers.values[REGISTER] = address
    core.registers.values[VECTOR_BUFFER] = vdeq.buffer


def _word(core: Core, scale: Any, offset: int, signed: bool) -> int:
    """A quantisation word; what does not fit is recorded and brought into range."""
    value = np.float32(scale)
    if not np.isfinite(value) or 0 < abs(value) < np.finfo(np.float32).tiny:
        core.fault("bad_operand", what="the dequantisation scale", value=float(value), limit="0 or a normal float")
        value = np.float32(0)
    if not -256 <= offset <= 255:
        core.fault("bad_operand", what="the dequantisation offset", value=offset, limit="-256 to 255")
    return int(encode_quant_word(value, min(max(offset, -256), 255), signed))
