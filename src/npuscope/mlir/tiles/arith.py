"""arith: numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.mlir.attributes import parse_number
from npuscope.mlir.tiles.calls import at_site, call, operator, pure
from npuscope.mlir.tiles.kinds import bits_of, dtype_of, element_of, shape_of
from npuscope.mlir.tiles.literals import dense_elements
from npuscope.tile import floats, integers
from npuscope.tile.affine import Affine
from npuscope.tile.box import Box
from npuscope.tile.narrow import is_eight_bits
from npuscope.tile.shapes import choose, choose_whole

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


def constant(writer: TileWriter, op: Op) -> None:
    """A number, the same one all over a tile, or a list of them."""
    kind = op.results[0].type
    writer.alias(op.results[0], writer.constant(literal(kind, op.attributes["value"]), "c"))


def literal(kind: str, text: str) -> Any:
    """The value of a constant's attribute."""
    shape, element = shape_of(kind), element_of(kind)
    listed = dense_elements(text)
    dtype = dtype_of(element)
    if listed is not None:
        return np.array(listed, dtype).reshape((1, *shape))
    number = parse_number(text)
    if dtype == np.bool_:
        truth = bool(number)
        return Box(shape, {} if truth else {0: (0, 0)}) if shape else np.array([truth])
    if dtype.kind == "i":
        bits = bits_of(element)
        half = 1 << (bits - 1)
        return Affine((int(number) + half) % (2 * half) - half, (0,) * len(shape), shape, bits)
    return np.full((1,) * (len(shape) + 1), number, np.float64).astype(dtype)


def compare_integers(writer: TileWriter, op: Op) -> None:
    """arith.cmpi."""
    call(writer, op, partial(integers.compare, op.attr_int("predicate")))


def compare_floats(writer: TileWriter, op: Op) -> None:
    """arith.cmpf."""
    call(writer, op, partial(floats.compare, op.attr_int("predicate")))


def division(function: Any) -> Any:
    """An integer division; the machine is told where the divisor is zero."""

    def lower(writer: TileWriter, op: Op) -> None:
        call(writer, op, function, f"m.zero_divisor({writer.site()})")

    return lower


def widened(function: Any) -> Any:
    """A conversion to an integer type of so many bits."""
    return lambda writer, op: call(writer, op, partial(function, bits_of(element_of(op.results[0].type))))


def converted(function: Any) -> Any:
    """A conversion to a numpy type."""
    return lambda writer, op: call(writer, op, partial(function, dtype_of(element_of(op.results[0].type))))


def as_type(dtype: np.dtype[Any], value: Any) -> np.ndarray:
    """The value rounded to the type."""
    result: np.ndarray = value.astype(dtype)
    return result


def shortened(writer: TileWriter, op: Op) -> None:
    """A conversion to a narrower float."""
    dtype = dtype_of(element_of(op.results[0].type))
    call(writer, op, partial(floats.to_float, dtype, False) if is_eight_bits(dtype) else partial(as_type, dtype))


def from_unsigned(dtype: np.dtype[Any], value: Any) -> np.ndarray:
    """An integer without a sign as a float."""
    result: np.ndarray = integers.unsigned(value).astype(dtype)
    return result


def to_unsigned(dtype: np.dtype[Any], value: np.ndarray) -> np.ndarray:
    """A float as an integer without a sign."""
    wide = np.clip(np.nan_to_num(np.trunc(value.astype(np.float64))), 0, 2.0 ** (8 * dtype.itemsize) - 1)
    return wide.astype(f"uint{8 * dtype.itemsize}").view(dtype)


def select(writer: TileWriter, op: Op) -> None:
    """arith.select; one truth may choose between whole tiles."""
    rank = len(shape_of(op.results[0].type))
    call(writer, op, choose if shape_of(op.operands[0].type) or not rank else partial(choose_whole, rank))


def bitcast(writer: TileWriter, op: Op) -> None:
    """arith.bitcast: the same bits as another type."""
    call(writer, op, partial(integers.reinterpret, dtype_of(element_of(op.results[0].type))))


def index_cast(writer: TileWriter, op: Op) -> None:
    """arith.index_cast: wider or narrower, as the types say."""
    wider = bits_of(element_of(op.results[0].type)) > bits_of(element_of(op.operands[0].type))
    (widened(integers.widen) if wider else widened(integers.narrow))(writer, op)


def extended_sum(writer: TileWriter, op: Op) -> None:
    """arith.addui_extended: the sum and whether it passed the width."""
    call(writer, op, _sum_and_carry)


def _sum_and_carry(one: Any, other: Any) -> tuple[Any, Any]:
    total = integers.add(0, integers.dense(one), integers.dense(other))
    return total, integers.unsigned(total) < integers.unsigned(one)


def extended_product(writer: TileWriter, op: Op) -> None:
    """arith.mulsi_extended and mului_extended: the lower and the upper half."""
    call(writer, op, _signed_halves if op.name == "arith.mulsi_extended" else _unsigned_halves)


def _unsigned_halves(one: Any, other: Any) -> tuple[Any, Any]:
    return integers.multiply(0, one, other), integers.high_product_unsigned(one, other)


def _signed_halves(one: Any, other: Any) -> tuple[Any, Any]:
    left, right = integers.dense(one), integers.dense(other)
    if left.dtype.itemsize < 8:
        bits = left.dtype.itemsize * 8
        exact = left.astype(np.int64) * right
        return exact.astype(left.dtype), (exact >> bits).astype(left.dtype)
    high = integers.high_product_unsigned(left, right)
    return left * right, high - np.where(left < 0, right, 0) - np.where(right < 0, left, 0)


LOWERINGS = {
    "arith.constant": constant,
    "arith.addi": at_site(integers.add),
    "arith.subi": at_site(integers.subtract),
    "arith.muli": at_site(integers.multiply),
    "arith.shli": at_site(integers.shift_left),
    "arith.divsi": division(integers.divide),
    "arith.remsi": division(integers.remainder),
    "arith.divui": division(integers.divide_unsigned),
    "arith.remui": division(integers.remainder_unsigned),
    "arith.floordivsi": division(integers.floor_divide),
    "arith.ceildivsi": division(integers.ceil_divide),
    "arith.andi": pure(integers.conjunction),
    "arith.ori": pure(integers.disjunction),
    "arith.xori": pure(integers.exclusive),
    "arith.shrsi": pure(integers.shift_right),
    "arith.shrui": pure(integers.shift_right_unsigned),
    "arith.minsi": pure(integers.minimum),
    "arith.maxsi": pure(integers.maximum),
    "arith.minui": pure(integers.minimum_unsigned),
    "arith.maxui": pure(integers.maximum_unsigned),
    "arith.cmpi": compare_integers,
    "arith.extsi": widened(integers.widen),
    "arith.extui": widened(integers.widen_unsigned),
    "arith.trunci": widened(integers.narrow),
    "arith.index_cast": index_cast,
    "arith.index_castui": index_cast,
    "arith.ceildivui": division(integers.ceil_divide_unsigned),
    "arith.addui_extended": extended_sum,
    "arith.mulsi_extended": extended_product,
    "arith.mului_extended": extended_product,
    "arith.select": select,
    "arith.addf": operator("+"),
    "arith.subf": operator("-"),
    "arith.mulf": operator("*"),
    "arith.divf": operator("/"),
    "arith.remf": pure(np.fmod),
    "arith.negf": pure(np.negative),
    "arith.maxnumf": pure(np.fmax),
    "arith.minnumf": pure(np.fmin),
    "arith.maximumf": pure(np.maximum),
    "arith.minimumf": pure(np.minimum),
    "arith.cmpf": compare_floats,
    "arith.extf": converted(as_type),
    "arith.truncf": shortened,
    "arith.convertf": shortened,
    "arith.sitofp": converted(floats.from_integer),
    "arith.uitofp": converted(from_unsigned),
    "arith.fptosi": converted(floats.to_integer),
    "arith.fptoui": converted(to_unsigned),
    "arith.bitcast": bitcast,
}
