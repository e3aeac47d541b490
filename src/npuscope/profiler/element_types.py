"""Element types as steps name them: their size, and what the vendor calls them."""

from __future__ import annotations

from functools import cache

import numpy as np

from npuscope.errors import Unsupported
from npuscope.npu.numbers.dtypes import INT4, dtype_of

BITS = {"float4_e2m1fn": 4, "float4_e1m2": 4, "fp4x2_e2m1_t": 4, "fp4x2_e1m2_t": 4, "hifloat8_t": 8, "fp8_e8m0_t": 8}
"""Types that numpy has no name for."""

NAMES = {
    "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "float8_e4m3fn": "E4M3",
    "float8_e5m2": "E5M2", "int4": "S4", "int8": "S8", "int16": "S16", "int32": "S32", "int64": "S64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "B8", "float4_e2m1fn": "E2M1", "fp4x2_e2m1_t": "E2M1",
    "hf32": "HF32",
}  # fmt: skip
"""numpy's names, and what operand tables call them (opprof.md 3.1)."""


def element_bytes(name: str) -> float:
    """Bytes of one element (half a byte for four bits); NaN for a type that is not known."""
    if name in BITS:
        return BITS[name] / 8
    dtype = _dtype(name)
    if dtype is None:
        return float("nan")
    return 0.5 if dtype == INT4 else float(dtype.itemsize)


def operand_name(name: str) -> str:
    """``F16``, ``S8``; the name itself where the vendor has none for it."""
    dtype = _dtype(name)
    return NAMES.get(dtype.name if dtype is not None else name, name.upper())


@cache
def _dtype(name: str) -> np.dtype | None:
    try:
        return dtype_of(name)
    except Unsupported:
        pass
    try:
        return np.dtype(name) if name else None
    except TypeError:
        return np.dtype(np.float32) if name == "hf32" else None
