"""What the vector unit's counters tell apart: the type of the elements, and how many of them one cycle handles.

The vendor does not say what its counters of half-precision instructions with 128, 64 and 32 operations hold. The rates
of hardware.md 6.2 have exactly these three classes for half: full rate, conversions (64 lanes, the wider side's), and
exp, ln, sqrt and div.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache


class VectorKind(Enum):
    """The counters of vector work by type."""

    FP32 = auto()
    FP16_128 = auto()
    FP16_64 = auto()
    FP16_32 = auto()
    INT32 = auto()
    INT16 = auto()
    MISC = auto()


LANES_A2 = {
    VectorKind.FP32: 64, VectorKind.FP16_128: 128, VectorKind.FP16_64: 64, VectorKind.FP16_32: 32,
    VectorKind.INT32: 64, VectorKind.INT16: 128, VectorKind.MISC: 32,
}  # fmt: skip
"""Operations that one count of a kind stands for: the factors of ``vec_fops`` (opprof.md 2.3)."""
LANES_310P = LANES_A2 | {VectorKind.INT32: 16, VectorKind.INT16: 32, VectorKind.MISC: 16}

SPECIAL = re.compile(r"^V?(EXP|LN|LOG|SQRT|DIV)")
"""Texts of steps of the special function unit (hardware.md 6.2 and 6.3: exp, ln, sqrt and div)."""
CONVERSION = re.compile(r"CONV|CAST|^V?AXPY")
MOVE = re.compile(r"COPY|MOV|TRANSPOSE|NCHWCONV|GATHER|SCATTER|REDUCEV2|SORT|EXTRACT|CONCAT|BRCB|CMPMASK")
"""Texts of steps that move elements and compute nothing."""

_FP32 = {"float32", "float", "f32", "fp32"}
_FP16 = {"float16", "half", "f16", "fp16", "bfloat16", "bf16", "bfloat16_t"}
_INT32 = {"int32", "uint32", "s32", "u32", "int32_t", "uint32_t"}
_INT16 = {"int16", "uint16", "s16", "u16", "int16_t", "uint16_t"}


def is_special(text: str) -> bool:
    """Whether a step of this text keeps the special function unit busy."""
    return SPECIAL.search(text.upper()) is not None


@lru_cache(maxsize=4096)
def vector_kind(text: str, dtype: str) -> VectorKind | None:
    """The counter of a step, from its text and the type of its elements; None where the type is not known."""
    text, dtype = text.upper(), dtype.lower()
    if not dtype:
        return None
    if MOVE.search(text):
        return VectorKind.MISC
    if dtype in _FP32:
        return VectorKind.FP32
    if dtype in _FP16:
        if SPECIAL.search(text):
            return VectorKind.FP16_32
        return VectorKind.FP16_64 if CONVERSION.search(text) else VectorKind.FP16_128
    if dtype in _INT32:
        return VectorKind.INT32
    return VectorKind.INT16 if dtype in _INT16 else VectorKind.MISC


@lru_cache(maxsize=1024)
def is_integer(dtype: str) -> bool | None:
    """Whether the cube's integer part multiplies elements of this type; None where the type is not known."""
    return re.match(r"u?int|[su]\d", dtype.lower()) is not None if dtype else None
