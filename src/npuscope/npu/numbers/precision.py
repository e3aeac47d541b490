"""The precision in which the vector unit computes half and bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npuscope.npu.numbers.dtypes import BF16, F16, F32, Array, type_name
from npuscope.npu.numbers.rounding import RoundMode, round_to_float


def compute_in_f32(fn: Callable[..., Array], *arrays: Any, saturate: bool = False) -> Array:
    """`fn` of the operands in float32, the result rounded once (nearest even) to the type of the arrays.

    `arrays` are half or bfloat16 of one type and Python scalars; float arrays are computed as they are and never
    saturated (hardware.md 4.1: float always IEEE). With `saturate`, infinities become the largest finite value and NaN
    0. Nothing warns: division by 0 and overflow are ordinary results. Raises ValueError for other or for mixed types.
    """
    types = {array.dtype for array in arrays if isinstance(array, (np.ndarray, np.generic))}
    if len(types) != 1 or not types <= {F16, BF16, F32}:
        names = ", ".join(sorted(type_name(dtype) for dtype in types)) or "none"
        raise ValueError(f"half, bfloat16_t or float arrays of one type are needed, not {names}")
    (dtype,) = types
    with np.errstate(all="ignore"):
        result = fn(*(np.asarray(array).astype(F32) for array in arrays))
    return round_to_float(np.asarray(result), dtype, RoundMode.RINT, saturate=saturate)
