"""Registers: 64-bit arrays with one entry for each group of elements, read and written as the type says."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from npuscope.tile.ptx.parse import PtxError

TYPES: dict[str, np.dtype[Any]] = {
    **{f"{letter}{width}": np.dtype(f"u{width // 8}") for letter in "bu" for width in (8, 16, 32, 64)},
    **{f"s{width}": np.dtype(f"i{width // 8}") for width in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype(np.float32), "pred": np.dtype(np.bool_),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "ue8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
}  # fmt: skip
"""Scalar types; those with x2 hold two of them in one register, the first one in the lower half."""
_NUMBER = re.compile(
    r"(-?)(?:0[xX]([0-9a-fA-F]+)U?|0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})|(\d+)U?"
    r"|(\d*\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+))"
)
_UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


class Registers:
    """The registers of one run. `groups` is how many groups of elements there are."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self._held: dict[str, np.ndarray] = {}

    def read(self, operand: str, kind: str) -> np.ndarray:
        """An operand as numbers of a type, (groups,) or for a packed type (groups, 2)."""
        if operand.startswith("!"):
            return ~self.read(operand[1:], kind)
        raw = self._held.get(operand)
        if raw is None:
            return self._literal(operand, kind)
        if kind == "pred":
            return raw != 0
        if kind.endswith("x2"):
            scalar = TYPES[kind[:-2]]
            halves = raw.astype(_UNSIGNED[2 * scalar.itemsize])
            return halves[:, None].view(scalar)
        dtype = TYPES[kind]
        return raw.astype(_UNSIGNED[dtype.itemsize]).view(dtype)

    def _literal(self, operand: str, kind: str) -> np.ndarray:
        match = _NUMBER.fullmatch(operand)
        if match is None:
            raise PtxError(f"reads the PTX operand {operand}, which nothing wrote")
        minus, hexadecimal, single, double, decimal, real = match.groups()
        if single or double:
            bits, real_type = (int(single, 16), np.float32) if single else (int(double, 16), np.float64)
            number: Any = np.array([bits], np.uint32 if single else np.uint64).view(real_type)[0]
        elif real:
            number = float(real)
        else:
            number = int(hexadecimal, 16) if hexadecimal else int(decimal)
        number = -number if minus else number
        packed = kind.endswith("x2")
        dtype = TYPES[kind[:-2] if packed else kind]
        if isinstance(number, int) and dtype.kind in "iub":
            size = 2 * dtype.itemsize if packed else dtype.itemsize
            raw = np.array([number & (1 << 8 * size) - 1], np.uint64).astype(_UNSIGNED[size])
            value = raw.view(dtype) if dtype.kind != "b" else raw != 0
        elif isinstance(number, int) and packed:
            value = np.array([number], np.uint64).astype(_UNSIGNED[2 * dtype.itemsize]).view(dtype)
        else:
            value = np.array([number], np.float64).astype(dtype)
        return np.broadcast_to(value, (self.groups, 2) if packed else (self.groups,))

    def write(self, name: str, value: np.ndarray, where: np.ndarray | None) -> None:
        """Set a register; `where` tells in which groups."""
        raw = self._raw(value)
        if where is not None:
            raw = np.where(where, raw, self._held.get(name, np.uint64(0)))
        self._held[name] = raw

    def _raw(self, value: np.ndarray) -> np.ndarray:
        array = np.ascontiguousarray(value)
        if array.dtype == np.bool_:
            return np.broadcast_to(array, (self.groups,)).astype(np.uint64)
        if array.ndim == 2:
            array = array.view(_UNSIGNED[2 * array.dtype.itemsize])[:, 0]
        else:
            array = array.view(_UNSIGNED[array.dtype.itemsize])
        return np.broadcast_to(array, (self.groups,)).astype(np.uint64)

    def bits(self, name: str, width: int) -> np.ndarray:
        """The lower bits of a register as numbers without a sign; zeros where nothing was written."""
        raw = self._held.get(name)
        return np.zeros(self.groups, _UNSIGNED[width]) if raw is None else raw.astype(_UNSIGNED[width])
