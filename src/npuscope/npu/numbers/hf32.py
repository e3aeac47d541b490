"""HF32: float32 inputs of the cube shortened to fewer mantissa bits."""

from __future__ import annotations

from enum import Enum

import numpy as np

from npuscope.npu.numbers.dtypes import F32, Array, type_name

MANTISSA_BITS = 10  # 950 (hardware.md 5)
_F32_MANTISSA_BITS = 23


class Hf32Mode(Enum):
    """How float32 becomes HF32.

    Public sources disagree about the device's second mode. Its name in Ascend C is NEAREST_ZERO, and the CATLASS DSL's
    reference rounds to nearest with ties toward zero; hardware.md 5 and the vendor's English pages say toward zero.
    Both readings are here.
    """

    NEAREST_EVEN = "nearest, ties to even"
    NEAREST_ZERO = "nearest, ties toward zero"
    TOWARD_ZERO = "toward zero"


def to_hf32(values: Array, mode: Hf32Mode = Hf32Mode.NEAREST_EVEN, *, mantissa_bits: int = MANTISSA_BITS) -> Array:
    """float32 `values` rounded to HF32 (8 exponent bits, `mantissa_bits` stored mantissa bits), as float32.

    Infinities and NaN stay; a value that rounds past the largest one becomes an infinity; subnormals are rounded on the
    same bit (hardware.md 5). The vendor gives 10 bits for 950; its model converter's page gives 11 and names no chip.
    Raises ValueError for another type than float32 and for a bit count outside 1 to 22.
    """
    if values.dtype != F32:
        raise ValueError(f"HF32 is made from float, not from {type_name(values.dtype)}")
    if not 1 <= mantissa_bits < _F32_MANTISSA_BITS:
        raise ValueError(f"HF32 has 1 to {_F32_MANTISSA_BITS - 1} mantissa bits, not {mantissa_bits}")
    dropped = _F32_MANTISSA_BITS - mantissa_bits
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    rounded = bits
    if mode is not Hf32Mode.TOWARD_ZERO:
        rounded = rounded + np.uint32((1 << (dropped - 1)) - 1)
    if mode is Hf32Mode.NEAREST_EVEN:
        rounded = rounded + ((bits >> np.uint32(dropped)) & np.uint32(1))
    rounded = rounded & np.uint32(0xFFFF_FFFF - ((1 << dropped) - 1))
    return np.where(np.isfinite(values), rounded.view(np.float32), values)
