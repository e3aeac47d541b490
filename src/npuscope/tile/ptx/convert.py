"""PTX's cvt: between numbers of all kinds, one or two in a register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from npuscope.tile import directed
from npuscope.tile.narrow import saturated
from npuscope.tile.ptx.numbers import ROUNDING, flushed
from npuscope.tile.ptx.parse import Instruction, PtxError
from npuscope.tile.ptx.registers import TYPES

Read = Callable[[str], np.ndarray]
WHOLE = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
FOUR_BITS = np.dtype(ml_dtypes.float4_e2m1fn)


def convert(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    """The converted number. Raises PtxError for types that are not known."""
    *words, target, source = instruction.suffixes
    if target.endswith("x2") and not source.endswith("x2"):
        if target == "e2m1x2":
            return _two_fours(reads, source)
        upper, lower = (_one(instruction, words, target[:-2], read(_known(instruction, source))) for read in reads)
        return np.stack([lower, upper], axis=1)
    if source == "e2m1x2":
        return _from_fours(reads[0]("b8"), _known(instruction, target[:-2]))
    if source.endswith("x2"):
        return _one(instruction, words, target[:-2], reads[0](_known(instruction, source[:-2]) + "x2"))
    return _one(instruction, words, target, reads[0](_known(instruction, source)))


def _known(instruction: Instruction, kind: str) -> str:
    if kind not in TYPES:
        raise PtxError(f"has the PTX instruction {instruction.text}, whose types are not supported")
    return kind


def _one(instruction: Instruction, words: Sequence[str], target: str, value: np.ndarray) -> np.ndarray:
    dtype = TYPES[_known(instruction, target)]
    if "ftz" in words:
        value = flushed(value)
    real, from_real = dtype.kind not in "iub", value.dtype.kind not in "iub"
    whole = next((WHOLE[word] for word in words if word in WHOLE), None)
    if not real:
        if from_real:
            return directed.to_integer(dtype, whole or "rz", value)
        return _integer(words, dtype, value)
    if whole is not None:
        return directed.whole(whole, value).astype(dtype)
    if target == "tf32":
        return _tf32("rna" in words, value)
    mode = next((ROUNDING[word] for word in words if word in ROUNDING), "rn")
    if "relu" in words:
        value = np.where(value > 0, value, np.zeros_like(value))
    if "satfinite" in words:
        return saturated(dtype, value)
    if target == "ue8m0":
        return _exponent_only(mode, value)
    if "sat" in words:
        value = np.clip(np.nan_to_num(value.astype(np.float64), nan=0.0), 0, 1)
    return directed.narrow(dtype, mode, value)


def _integer(words: Sequence[str], dtype: np.dtype[Any], value: np.ndarray) -> np.ndarray:
    if "sat" not in words:
        return value.astype(dtype)
    limits = np.iinfo(dtype)
    held = np.array([min(max(int(number), limits.min), limits.max) for number in value.reshape(-1)], dtype=object)
    return held.astype(dtype).reshape(value.shape)


def _tf32(away: bool, value: np.ndarray) -> np.ndarray:
    """float32 with 10 bits of fraction, to the nearest; halves away from zero, or to even."""
    raw = np.ascontiguousarray(value.astype(np.float32)).view(np.uint32)
    half = np.uint32(0x1000) if away else np.uint32(0xFFF) + ((raw >> np.uint32(13)) & np.uint32(1))
    result = ((raw + half) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(value), result, value)


def _exponent_only(mode: str, value: np.ndarray) -> np.ndarray:
    """The power of two below (or, rounded up, at or above) the number's size, as 8 bits of exponent."""
    fraction, exponent = np.frexp(np.abs(value.astype(np.float64)))
    power = exponent - 1 + ((fraction > 0.5) & (mode == "ru"))
    code = np.clip(np.where(value == 0, 0, power + 127), 0, 254)
    return np.where(np.isnan(value), 255, code).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def _two_fours(reads: Sequence[Read], source: str) -> np.ndarray:
    upper, lower = (np.clip(np.nan_to_num(read(source).astype(np.float32), nan=6.0), -6, 6) for read in reads)
    codes = [part.astype(FOUR_BITS).view(np.uint8) & 0xF for part in (lower, upper)]
    return codes[0] | codes[1] << 4


def _from_fours(packed: np.ndarray, target: str) -> np.ndarray:
    parts = np.stack([packed & 0xF, packed >> 4], axis=1).astype(np.uint8)
    return parts.view(FOUR_BITS).astype(np.float32).astype(TYPES[target])
