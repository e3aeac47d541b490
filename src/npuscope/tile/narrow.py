"""Floats in 8 bits: what lies beyond the largest number becomes that number, as devices have it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def saturated(dtype: np.dtype[Any], value: np.ndarray) -> np.ndarray:
    """The value in a narrower type, to the nearest, held at the largest finite number; what is no number stays so."""
    largest = float(ml_dtypes.finfo(dtype).max)
    held = np.clip(value.astype(np.float32) if value.dtype.itemsize < 4 else value, -largest, largest)
    result: np.ndarray = held.astype(dtype)
    return result


def is_eight_bits(dtype: np.dtype[Any]) -> bool:
    """Whether it is a float of 8 bits."""
    return dtype.itemsize == 1 and dtype.kind not in "iub"


def towards_zero(dtype: np.dtype[Any], value: np.ndarray) -> np.ndarray:
    """The value in a narrower type, the rest cut off."""
    result = saturated(dtype, value) if is_eight_bits(dtype) else value.astype(dtype)
    wide = np.float64 if value.dtype.itemsize == 8 else np.float32
    away = np.abs(result.astype(wide)) > np.abs(value.astype(wide))
    codes = np.dtype(f"int{8 * dtype.itemsize}")
    nearer = (result.view(codes) - codes.type(1)).view(dtype)  # one step towards zero, whatever the sign
    return np.where(away, nearer, result)
