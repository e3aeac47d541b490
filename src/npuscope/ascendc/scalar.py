"""Scalar computations of the library: casts and bit counts (pages of 标量计算). They leave no trace rows, as other
arithmetic of the scalar unit."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core
from npuscope.npu.numbers import convert, dtype_of, is_floating, type_name

ALL_BITS = (1 << 64) - 1
CASTS = {
    ("float32", "float16"), ("float32", "int32"), ("float32", "bfloat16"), ("float16", "float32"),
    ("bfloat16", "float32"),
}
"""(from, to) pairs that the scalar unit converts."""


@operation("ascendc.scalar_cast")
def scalar_cast(core: Core, site: int, value: Any, *, dtype: str, round_mode: int, operand_types: Any) -> Any:
    """Cast<from, to, mode>(value): float to half, int32 and bfloat16, and half and bfloat16 to float.

    Rounded in `round_mode` (RoundMode; NONE rounds to nearest even). float to int32 saturates. Raises UserError for a
    pair of types that the scalar unit does not convert.
    """
    source, target = dtype_of(operand_types[0]), dtype_of(dtype)
    if (source.name, target.name) not in CASTS:
        raise UserError(f"scalar_cast from {type_name(source)} to {type_name(target)} does not exist")
    result = convert(np.array([value], source), target, round_mode)[0]
    return float(result) if is_floating(target) else int(result)


@operation("ascendc.scalar_get_count_of_value")
def scalar_get_count_of_value(core: Core, site: int, value: int, count_value: int) -> int:
    """GetBitCount: how many of the 64 bits are `count_value`."""
    ones = (value & ALL_BITS).bit_count()
    return ones if count_value else 64 - ones


@operation("ascendc.scalar_get_sff_value")
def scalar_get_sff_value(core: Core, site: int, value: int, count_value: int) -> int:
    """GetSFFValue: number of the lowest bit that is `count_value`, -1 when none of the 64 is."""
    bits = (value if count_value else ~value) & ALL_BITS
    return (bits & -bits).bit_length() - 1


@operation("ascendc.scalar_count_leading_zero")
def scalar_count_leading_zero(core: Core, site: int, value: int) -> int:
    """CountLeadingZero: zeros above the highest one, 64 for 0."""
    return 64 - (value & ALL_BITS).bit_length()


@operation("ascendc.count_bits_cnt_same_as_sign_bit")
def count_bits_cnt_same_as_sign_bit(core: Core, site: int, value: int) -> int:
    """CountBitsCntSameAsSignBit: how many bits below the sign bit are like it, from the highest on; -1 for 0 and -1."""
    (signed,) = struct.unpack("<q", (value & ALL_BITS).to_bytes(8, "little"))
    magnitude = signed if signed >= 0 else ~signed
    return 63 - magnitude.bit_length() if magnitude else -1
