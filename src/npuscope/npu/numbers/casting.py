"""Cast of the vector unit: which pairs of types it converts, and to what values."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from npuscope.npu.numbers.dtypes import BF16, F16, F32, INT4, Array, DType, is_floating, type_name
from npuscope.npu.numbers.rounding import RoundMode, narrow_int, round_to_float, round_to_int, round_to_integer

Modes: TypeAlias = frozenset[RoundMode]

_NONE: Modes = frozenset({RoundMode.NONE})
_ROUNDED: Modes = frozenset({RoundMode.RINT, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.ROUND, RoundMode.TRUNC})
_ANY: Modes = _ROUNDED | _NONE

_I8, _U8 = np.dtype(np.int8), np.dtype(np.uint8)
_I16, _I32, _I64 = np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64)

# Source and destination -> modes, NPU arch 2201 (A2, A3): the table on the vendor's page of the memory-vector Cast.
_CAST_MODES: dict[tuple[DType, DType], Modes] = {
    (INT4, F16): _NONE,
    (_I8, F16): _NONE,
    (_U8, F16): _NONE,
    (_I16, F16): _ANY,
    (_I16, F32): _NONE,
    (F16, INT4): _ANY,
    (F16, _I8): _ANY,
    (F16, _U8): _ANY,
    (F16, _I16): _ROUNDED,
    (F16, _I32): _ROUNDED,
    (F16, F32): _NONE,
    (BF16, _I32): _ROUNDED,
    (BF16, F32): _NONE,
    (_I32, _I16): _NONE,
    (_I32, F16): frozenset(RoundMode),  # has no effect there
    (_I32, F32): _ANY,
    (_I32, _I64): _NONE,
    (F32, _I16): _ROUNDED,
    (F32, F16): frozenset(RoundMode),
    (F32, BF16): _ROUNDED,
    (F32, _I32): _ROUNDED,
    (F32, F32): _ROUNDED,
    (F32, _I64): _ROUNDED,
    (_I64, _I32): _NONE,
    (_I64, F32): _ROUNDED,
}


def cast_modes(src: DType, dst: DType) -> Modes:
    """The rounding modes that A2 and A3 document for a Cast of this pair; empty where they have no such Cast."""
    return _CAST_MODES.get((np.dtype(src), np.dtype(dst)), frozenset())


def cast(
    values: Array,
    dst: DType,
    mode: RoundMode | int = RoundMode.NONE,
    *,
    saturate: bool = False,
    keep_low_bits: bool = False,
) -> Array:
    """What Cast of the memory-vector ISA on A2 and A3 gives: `values` as `dst`, of the same shape.

    Results are those of `convert`, in any mode, those too that the device does not take for the pair (`cast_modes`).
    int32 -> half is Cast with DEQSCALE 1, to nearest even whatever the mode; `cast_dequant_f16` takes the scale.
    Raises ValueError for a pair without a Cast.
    """
    dst = np.dtype(dst)
    if (values.dtype, dst) not in _CAST_MODES:
        raise ValueError(f"Cast from {type_name(values.dtype)} to {type_name(dst)} does not exist on A2 and A3")
    if (values.dtype, dst) == (_I32, F16):
        mode = RoundMode.RINT
    return convert(values, dst, mode, saturate=saturate, keep_low_bits=keep_low_bits)


def convert(
    values: Array,
    dst: DType,
    mode: RoundMode | int = RoundMode.NONE,
    *,
    saturate: bool = False,
    keep_low_bits: bool = False,
) -> Array:
    """`values` as `dst` for every pair of numeric types, rounded in `mode`.

    Sources: hardware.md 4.1; the vendor's precision-conversion page (values, int32 -> int16 and int64 -> int32
    saturate) and SetSaturationFlag page (modes).

    * float -> the same float: integral values in that type.
    * anything -> float: one rounding. Too large is an infinity, or with `saturate` (f16, bf16 and fp8 only) the largest
      finite value, and NaN 0 (CTRL[48], SetSaturationFlag FLOAT).
    * float -> integer, integer -> integer: saturating, NaN is 0; with `keep_low_bits` (SetSaturationFlag CAST off) cut
      to the low bits instead.
    """
    dst = np.dtype(dst)
    if not is_floating(dst):
        if is_floating(values.dtype):
            return round_to_int(values, dst, mode, keep_low_bits=keep_low_bits)
        return narrow_int(values, dst, keep_low_bits=keep_low_bits)
    if values.dtype == dst:
        values = round_to_integer(values if dst.itemsize >= F32.itemsize else values.astype(F32), mode)
    return round_to_float(values, dst, mode, saturate=saturate)
