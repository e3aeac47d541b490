"""What a type of the tile dialects says: shape, element type, and the numpy type of the elements."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from npuscope.errors import Unsupported
from npuscope.mlir.types import element_type, is_float, is_integer
from npuscope.mlir.types import shape as extents_of

_POINTER = re.compile(r'!tt\.ptr<(.*?)(?:,\s*(?:\d+|"\w+"))?>')  # the address space is a number or a word
_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
}


@lru_cache(maxsize=4096)
def shape_of(text: str) -> tuple[int, ...]:
    """Extents of a tensor type, () for a scalar or a pointer."""
    if not text.startswith("tensor<"):
        return ()
    found = extents_of(text)
    assert found is not None and None not in found
    return tuple(int(count) for count in found if count is not None)


@lru_cache(maxsize=4096)
def element_of(text: str) -> str:
    """The element type of a tensor type, any other type itself."""
    return element_type(text) if text.startswith("tensor<") else text


@lru_cache(maxsize=4096)
def pointee_of(text: str) -> str:
    """What a (tile of) pointers points to."""
    match = _POINTER.fullmatch(element_of(text))
    if match is None:
        raise Unsupported(f"{text} is not a pointer type")
    return match.group(1)


@lru_cache(maxsize=4096)
def dtype_of(element: str) -> np.dtype[Any]:
    """The numpy type of an element type; a pointer is stored as int64."""
    if is_integer(element):
        bits = 64 if element == "index" else int(re.sub(r"\D", "", element))
        return np.dtype(np.bool_) if bits == 1 else np.dtype(f"int{max(bits, 8)}")
    if element.startswith("!tt.ptr"):
        return np.dtype(np.int64)
    found = _FLOATS.get(element) if is_float(element) else None
    if found is None:
        raise Unsupported(f"element type {element} is not supported")
    return np.dtype(found)


@lru_cache(maxsize=4096)
def bits_of(element: str) -> int:
    """Width of an integer type."""
    return 64 if element == "index" else int(re.sub(r"\D", "", element))


def is_pointer(text: str) -> bool:
    """Whether a type is a pointer or a tile of pointers."""
    return element_of(text).startswith("!tt.ptr")
