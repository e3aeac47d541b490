"""Element types: MLIR and Ascend C spellings, their numpy types, and the packing of int4."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from npuscope.errors import Unsupported

DType: TypeAlias = np.dtype[Any]
Array: TypeAlias = np.ndarray[Any, Any]

F16 = np.dtype(np.float16)
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
FP8_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
FP8_E5M2 = np.dtype(ml_dtypes.float8_e5m2)
INT4 = np.dtype(ml_dtypes.int4)

_MLIR: dict[str, DType] = {
    "f16": F16,
    "bf16": BF16,
    "f32": F32,
    "f64": F64,
    "f8E4M3FN": FP8_E4M3,
    "f8E5M2": FP8_E5M2,
    "i1": np.dtype(np.bool_),
    "i4": INT4,
    "si4": INT4,
    "index": np.dtype(np.int64),
}
_C: dict[str, DType] = {
    "bool": np.dtype(np.bool_),
    "half": F16,
    "bfloat16_t": BF16,
    "float": F32,
    "double": F64,
    "fp8_e4m3fn_t": FP8_E4M3,
    "fp8_e5m2_t": FP8_E5M2,
    "int4b_t": INT4,
}
for _bits in (8, 16, 32, 64):
    _signed, _unsigned = np.dtype(f"int{_bits}"), np.dtype(f"uint{_bits}")
    # Signless MLIR integers are signed: Ascend C has no signless type, and arith spells unsignedness in the operation.
    _MLIR |= {f"i{_bits}": _signed, f"si{_bits}": _signed, f"ui{_bits}": _unsigned}
    _C |= {f"int{_bits}_t": _signed, f"uint{_bits}_t": _unsigned}

_BY_NAME: dict[str, DType] = {**_MLIR, **_C}
_C_NAMES: dict[DType, str] = {dtype: name for name, dtype in _C.items()}


def dtype_of(name: str) -> DType:
    """The numpy type of an element type as MLIR (`f16`, `si8`, `index`) or Ascend C (`half`, `int8_t`) spells it.

    Signless integers are signed; `index` is int64; int4 takes one byte an element in an array (see `pack_int4`).
    Raises Unsupported for a name that is neither.
    """
    dtype = _BY_NAME.get(name)
    if dtype is None:
        raise Unsupported(f"element type {name!r} is not known; one of {', '.join(_BY_NAME)} is needed")
    return dtype


def type_name(dtype: DType) -> str:
    """What Ascend C calls `dtype` (`half`, `int8_t`), or numpy's name for a type that Ascend C does not have."""
    dtype = np.dtype(dtype)
    return _C_NAMES.get(dtype, dtype.name)


class FloatFormat(NamedTuple):
    """Stored mantissa bits, exponent of the smallest normal number, and the largest finite value."""

    mantissa_bits: int
    min_exponent: int
    largest: float


@cache
def float_format(dtype: DType) -> FloatFormat:
    """The binary format of a floating-point `dtype`; raises ValueError for any other type."""
    info = ml_dtypes.finfo(dtype)
    return FloatFormat(int(info.nmant), int(info.minexp), float(info.max))


@cache
def is_floating(dtype: DType) -> bool:
    """Whether `dtype` is a floating-point type; numpy itself does not count bf16 and fp8 (kind 'V') as such."""
    try:
        ml_dtypes.finfo(dtype)
    except (ValueError, TypeError):
        return False
    return True


@cache
def integer_range(dtype: DType) -> tuple[int, int]:
    """(smallest, largest) value of an integer `dtype`, int4 included; raises ValueError for any other type."""
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def pack_int4(values: Array) -> Array:
    """Integers in [-8, 7] -> uint8, two along the last axis to a byte, the first in the low nibble.

    An odd last axis leaves the last high nibble 0. The order is the one of the vendor's LoadDataWithTranspose page:
    (6, 7) is 0x76. Raises ValueError for a value outside the range.
    """
    wide = np.asarray(values).astype(np.int8 if values.dtype == INT4 else values.dtype)
    if wide.size and (wide.min() < -8 or wide.max() > 7):
        raise ValueError(f"int4 holds -8 to 7, not {wide.min()} to {wide.max()}")
    nibbles = wide.astype(np.uint8) & 0xF
    if nibbles.shape[-1] % 2:
        nibbles = np.concatenate([nibbles, np.zeros_like(nibbles[..., :1])], axis=-1)
    return nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)


def unpack_int4(packed: Array, count: int | None = None) -> Array:
    """The inverse of `pack_int4`: bytes -> int4, twice as many along the last axis, or the first `count` of them.

    Raises ValueError when the bytes hold fewer than `count` elements.
    """
    octets = np.asarray(packed).view(np.uint8)
    available = 2 * octets.shape[-1]
    if count is not None and not 0 <= count <= available:
        raise ValueError(f"{octets.shape[-1]} bytes hold {available} int4, not {count}")
    nibbles = np.stack([octets & 0xF, octets >> 4], axis=-1).reshape(*octets.shape[:-1], available)
    signed = (nibbles[..., :count].astype(np.int8) ^ 8) - 8
    return signed.astype(INT4)
