"""The arithmetic and logical instructions of PTX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npuscope.tile import bits, directed
from npuscope.tile.ptx.parse import Instruction, PtxError
from npuscope.tile.ptx.registers import TYPES

Read = Callable[[str], np.ndarray]
"""Reads an operand as a type."""
Operation = Callable[[Instruction, Sequence[Read]], np.ndarray]
ROUNDING = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
"""PTX's words for the ways to round, and ours."""
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def compare(word: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The truth of a comparison; words that end in u also hold where an operand is no number."""
    neither = _is_nan(one) | _is_nan(other)
    if word in ("num", "nan"):
        return neither if word == "nan" else ~neither
    if word == "ne":
        return (one != other) & ~neither
    if word in COMPARISONS:
        result: np.ndarray = COMPARISONS[word](one, other)
        return result
    if word[:-1] in COMPARISONS and word.endswith("u"):
        return neither | COMPARISONS[word[:-1]](one, other)
    raise PtxError(f"compares with the PTX word {word}, which is not known")


def _is_nan(value: np.ndarray) -> np.ndarray:
    return np.isnan(value) if _is_float(value.dtype) else np.zeros(value.shape, np.bool_)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "iub"


def kind_of(instruction: Instruction) -> str:
    """The type that the instruction works on. Raises PtxError for one that is not known."""
    kind = instruction.suffixes[-1] if instruction.suffixes else ""
    if (kind.removesuffix("x2") if kind.endswith("x2") else kind) not in TYPES:
        raise PtxError(f"has the PTX instruction {instruction.text}, whose type is not supported")
    return kind


def mode_of(instruction: Instruction) -> str:
    """How the instruction rounds."""
    return next((ROUNDING[word] for word in instruction.suffixes if word in ROUNDING), "rn")


def _finished(instruction: Instruction, value: np.ndarray) -> np.ndarray:
    """The result with small numbers flushed and held between 0 and 1, where that is asked for."""
    if "ftz" in instruction.suffixes:
        value = flushed(value)
    if "sat" in instruction.suffixes and _is_float(value.dtype):
        value = np.clip(np.nan_to_num(value.astype(np.float64), nan=0.0), 0, 1).astype(value.dtype)
    if "relu" in instruction.suffixes:
        value = np.where(value > 0, value, np.zeros_like(value))
    return value


def flushed(value: np.ndarray) -> np.ndarray:
    """float32 numbers without subnormal ones."""
    if value.dtype != np.float32:
        return value
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), value), value)


def _operands(instruction: Instruction, reads: Sequence[Read]) -> list[np.ndarray]:
    kind = kind_of(instruction)
    values = [read(kind) for read in reads]
    return [flushed(value) for value in values] if "ftz" in instruction.suffixes else values


def plain(function: Callable[..., np.ndarray]) -> Operation:
    """A function of operands of one type."""
    return lambda instruction, reads: _finished(instruction, function(*_operands(instruction, reads)))


def rounded(function: Callable[..., np.ndarray], exact: Callable[..., np.ndarray]) -> Operation:
    """A function that may be rounded otherwise than to the nearest."""

    def operate(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
        values, mode = _operands(instruction, reads), mode_of(instruction)
        if mode == "rn" and not (function is _fma and _is_float(values[0].dtype)):
            return _finished(instruction, _saturated(instruction, function, values))
        return _finished(instruction, exact(mode, *values))

    return operate


def _saturated(instruction: Instruction, function: Callable[..., np.ndarray], values: list[np.ndarray]) -> np.ndarray:
    if "sat" in instruction.suffixes and values[0].dtype.kind == "i":
        limits = np.iinfo(values[0].dtype)
        wide = function(*(value.astype(np.int64) for value in values))
        return np.clip(wide, limits.min, limits.max).astype(values[0].dtype)
    return function(*values)


def _fma(one: np.ndarray, other: np.ndarray, third: np.ndarray) -> np.ndarray:
    return directed.multiply_add("rn", one, other, third)


def _product(one: np.ndarray, other: np.ndarray, half: str) -> np.ndarray:
    if half == "lo":
        return one * other
    size = one.dtype.itemsize
    if size < 8:
        wide = one.astype(f"{one.dtype.kind}{2 * size}") * other.astype(f"{one.dtype.kind}{2 * size}")
        return wide if half == "wide" else (wide >> wide.dtype.type(8 * size)).astype(one.dtype)
    exact = one.astype(object) * other.astype(object)
    return np.array([int(number) >> 64 for number in exact], dtype=object).astype(one.dtype)


def multiply(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    """mul of floats, or of integers: the lower half, the upper one, or all."""
    half = next((word for word in instruction.suffixes if word in ("lo", "hi", "wide")), "")
    if half:
        one, other = _operands(instruction, reads)
        return _product(one, other, half)
    return rounded(np.multiply, directed.multiply)(instruction, reads)


def multiply_and_add(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    """mad: mul and then add; of floats it is fma."""
    half = next((word for word in instruction.suffixes if word in ("lo", "hi", "wide")), "")
    if not half:
        return OPERATIONS["fma"](instruction, reads)
    kind = kind_of(instruction)
    product = _product(reads[0](kind), reads[1](kind), half)
    return product + reads[2](f"{kind[0]}{8 * product.dtype.itemsize}")


def divide(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    """div of floats, or of integers towards zero (what a division by zero gives is not said)."""
    one, other = _operands(instruction, reads)
    if _is_float(one.dtype):
        return _finished(instruction, directed.divide(mode_of(instruction), one, other))
    safe = np.where(other == 0, one.dtype.type(1), other)
    return (one - np.fmod(one, safe)) // safe


def _extreme(larger: bool) -> Operation:
    def operate(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
        values = _operands(instruction, reads)
        keeps = "NaN" in instruction.suffixes or not _is_float(values[0].dtype)
        choose = (np.maximum if larger else np.minimum) if keeps else (np.fmax if larger else np.fmin)
        result = values[0]
        for value in values[1:]:
            result = choose(result, value)
        return _finished(instruction, result)

    return operate


def _shift(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    value, amount = reads[0](kind_of(instruction)), reads[1]("u32")
    width = 8 * value.dtype.itemsize
    by = np.minimum(amount, width - 1).astype(value.dtype)
    if instruction.name == "shl":
        return np.where(amount < width, value << by, value.dtype.type(0))
    return np.where((amount < width) | (value.dtype.kind == "i"), value >> by, value.dtype.type(0))


def _logic(function: Callable[..., np.ndarray]) -> Operation:
    return lambda instruction, reads: function(*(read(kind_of(instruction)) for read in reads))


def _lop3(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    one, other, third, table = (read("b32") for read in reads)
    return bits.three_input_logic(one, other, third, int(table[0]) if table.size else 0)


def _prmt(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    if instruction.suffixes != ("b32",):
        raise PtxError(f"has the PTX instruction {instruction.text}, which is not supported")
    return bits.permuted_bytes(*(read("b32") for read in reads))


def _bit_field(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    """bfe: a run of bits, with its sign where the type has one."""
    value = reads[0](kind_of(instruction))
    width = 8 * value.dtype.itemsize
    start = np.minimum(reads[1]("u32") & 0xFF, width).astype(np.int64)
    length = np.minimum(reads[2]("u32") & 0xFF, width).astype(np.int64)
    wide = value.astype(object)
    fields = []
    for number, low, count in zip(wide, start, length, strict=True):
        field = (int(number) >> int(low)) & ((1 << int(count)) - 1) if count else 0
        negative = value.dtype.kind == "i" and count and field >> int(count) - 1 & 1
        fields.append(field - (1 << int(count)) if negative else field)
    return np.array(fields, dtype=object).astype(value.dtype)


def _insert(instruction: Instruction, reads: Sequence[Read]) -> np.ndarray:
    """bfi: a run of bits put into another number."""
    one, other = (read(kind_of(instruction)) for read in reads[:2])
    width = 8 * one.dtype.itemsize
    start, length = ((read("u32") & 0xFF).astype(np.uint64) for read in reads[2:])
    ones = np.where(length >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(length, 63)) - np.uint64(1))
    inside = start < width
    shift = np.minimum(start, 63)
    mask = np.where(inside, ones << shift, np.uint64(0))
    moved = one.astype(np.uint64) << shift
    return ((other.astype(np.uint64) & ~mask) | (moved & mask)).astype(one.dtype)


def _wide(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda value: function(value.astype(np.float64)).astype(value.dtype)


def _negate(value: np.ndarray) -> np.ndarray:
    return np.negative(value)


OPERATIONS: dict[str, Operation] = {
    "add": rounded(np.add, directed.add), "sub": rounded(np.subtract, directed.subtract), "mul": multiply,
    "fma": rounded(_fma, directed.multiply_add), "mad": multiply_and_add, "div": divide, "min": _extreme(False),
    "max": _extreme(True), "neg": plain(_negate), "abs": plain(np.abs), "rem": plain(np.fmod),
    "and": _logic(np.bitwise_and), "or": _logic(np.bitwise_or), "xor": _logic(np.bitwise_xor),
    "not": _logic(np.invert), "shl": _shift, "shr": _shift, "lop3": _lop3, "prmt": _prmt, "bfe": _bit_field,
    "bfi": _insert, "popc": _logic(bits.count_ones), "clz": _logic(bits.leading_zeros),
    "brev": _logic(bits.reversed_bits), "copysign": plain(lambda sign, value: np.copysign(value, sign)),
    "rcp": lambda instruction, reads: _finished(
        instruction, directed.reciprocal(mode_of(instruction), *_operands(instruction, reads))
    ),
    "sqrt": lambda instruction, reads: _finished(
        instruction, directed.root(mode_of(instruction), *_operands(instruction, reads))
    ),
    "rsqrt": plain(_wide(lambda value: 1 / np.sqrt(value))), "ex2": plain(_wide(np.exp2)),
    "lg2": plain(_wide(np.log2)), "sin": plain(_wide(np.sin)), "cos": plain(_wide(np.cos)),
    "tanh": plain(_wide(np.tanh)),
}  # fmt: skip
"""By an instruction's name; those that are only approximate on a device are exact to the last place but one here."""
