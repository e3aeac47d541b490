"""tt: Triton's own operations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.mlir.attributes import parse_integers
from npuscope.mlir.tiles.calls import call
from npuscope.mlir.tiles.kinds import dtype_of, element_of, is_pointer, pointee_of, shape_of
from npuscope.tile import floats, integers, pointer, reduce, shapes
from npuscope.tile.affine import Affine, dense
from npuscope.tile.pointer import Pointer

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


def program_id(writer: TileWriter, op: Op) -> None:
    """tt.get_program_id."""
    writer.emit(f"{writer.define(op.results[0])} = m.program_id({op.attr_int('axis')})")


def program_count(writer: TileWriter, op: Op) -> None:
    """tt.get_num_programs."""
    writer.emit(f"{writer.define(op.results[0])} = m.program_count({op.attr_int('axis')})")


def make_range(writer: TileWriter, op: Op) -> None:
    """tt.make_range: start, start + 1, ..., end - 1."""
    start, end = (op.attr_int(key) for key in ("start", "end"))
    writer.alias(op.results[0], writer.constant(Affine(start, (1,), (end - start,), 32), "range"))


def shaped(function: Any) -> Any:
    """A function that is told the result's shape."""
    return lambda writer, op: call(writer, op, partial(function, shape_of(op.results[0].type)))


def expand_dims(writer: TileWriter, op: Op) -> None:
    """tt.expand_dims."""
    call(writer, op, partial(shapes.expand, op.attr_int("axis"), shape_of(op.results[0].type)))


def reshape(writer: TileWriter, op: Op) -> None:
    """tt.reshape."""
    call(writer, op, partial(shapes.reshape, shape_of(op.operands[0].type), shape_of(op.results[0].type)))


def transpose(writer: TileWriter, op: Op) -> None:
    """tt.trans."""
    order = parse_integers(op.attributes["order"])
    call(writer, op, partial(shapes.transpose, order, shape_of(op.results[0].type)))


def of_operands(function: Any, count: int = 1) -> Any:
    """A function that is told the shapes of its first operands."""
    return lambda writer, op: call(
        writer, op, partial(function, *(shape_of(operand.type) for operand in op.operands[:count]))
    )


def gather(writer: TileWriter, op: Op) -> None:
    """tt.gather: elements of a tile by index along an axis."""
    source, index = op.operands
    call(writer, op, partial(shapes.pick, op.attr_int("axis"), shape_of(source.type), shape_of(index.type)))


def unsplat(writer: TileWriter, op: Op) -> None:
    """tt.unsplat: the only element of a tile."""
    call(writer, op, lambda value: dense(value).reshape(dense(value).shape[0]))


def add_pointer(writer: TileWriter, op: Op) -> None:
    """tt.addptr: offsets count elements."""
    size = _pointee(op.operands[0].type).itemsize
    call(writer, op, partial(pointer.advance, size))


def _pointee(text: str) -> np.dtype[Any]:
    return dtype_of(pointee_of(text))


def load(writer: TileWriter, op: Op) -> None:
    """tt.load with or without mask and other."""
    dtype = writer.constant(_pointee(op.operands[0].type), "dtype")
    words = ", ".join(writer.uses(op.operands))
    shape = shape_of(op.operands[0].type)
    volatile = op.attributes.get("isVolatile", "false").startswith("true")
    writer.emit(f"{writer.define(op.results[0])} = m.load({writer.site()}, {dtype}, {shape}, {volatile}, {words})")


def store(writer: TileWriter, op: Op) -> None:
    """tt.store with or without mask."""
    dtype = writer.constant(_pointee(op.operands[0].type), "dtype")
    words = ", ".join(writer.uses(op.operands))
    writer.emit(f"m.store({writer.site()}, {dtype}, {shape_of(op.operands[0].type)}, {words})")


PRECISIONS = {0: "tf32", 1: "tf32x3", 2: "ieee", 3: "bf16x3", 4: "bf16x6"}
"""Triton's numbers of the ways to multiply float32."""


def dot(writer: TileWriter, op: Op) -> None:
    """tt.dot."""
    left, right, _ = op.operands
    precision = PRECISIONS.get(op.attr_int("inputPrecision", 2), "ieee")
    dtype = dtype_of(element_of(op.results[0].type))
    call(writer, op, partial(floats.dot, precision, shape_of(left.type), shape_of(right.type), dtype))


def bitcast(writer: TileWriter, op: Op) -> None:
    """tt.bitcast: the same bits as another type of the same width; a pointer keeps its address."""
    if is_pointer(op.results[0].type):
        writer.alias(op.results[0], writer.use(op.operands[0]))
        return
    call(writer, op, partial(integers.reinterpret, dtype_of(element_of(op.results[0].type))))


ROUND_TO_ZERO = 0


def convert(writer: TileWriter, op: Op) -> None:
    """tt.fp_to_fp."""
    dtype = dtype_of(element_of(op.results[0].type))
    cut = op.has("rounding") and op.attr_int("rounding") == ROUND_TO_ZERO
    call(writer, op, partial(floats.to_float, dtype, cut))


def to_pointer(writer: TileWriter, op: Op) -> None:
    """tt.int_to_ptr: an address without an owner."""
    call(writer, op, _as_pointer)


def _as_pointer(value: Any) -> Pointer:
    if isinstance(value, Affine):
        return Pointer(None, Affine(value.base, value.strides, value.shape, 64))
    return Pointer(None, value.astype(np.int64))


def to_integer(writer: TileWriter, op: Op) -> None:
    """tt.ptr_to_int."""
    call(writer, op, lambda value: value.address)


def clamp(writer: TileWriter, op: Op) -> None:
    """tt.clampf; propagateNan is all or none."""
    keeps = op.attr_int("propagateNan", 0) != 0
    call(writer, op, partial(floats.clamp, keeps))


def histogram(writer: TileWriter, op: Op) -> None:
    """tt.histogram: how often each number from 0 on comes up."""
    bins = shape_of(op.results[0].type)[0]
    call(writer, op, partial(reduce.histogram, bins, shape_of(op.operands[0].type)))


def function(writer: TileWriter, op: Op) -> None:
    """tt.func: a Python function of the machine and the arguments."""
    from npuscope.mlir.tiles.cf import blocks

    name = function_name(op.attr_str("sym_name"))
    region = op.regions[0]
    arguments = [writer.define(argument) for argument in region.blocks[0].arguments]
    writer.emit(f"def {name}({', '.join(['m', *arguments])}):")
    writer.indent()
    if len(region.blocks) == 1:
        writer.body(region.blocks[0].operations)
    else:
        results = blocks(writer, region)
        writer.emit(f"return {', '.join(results)}".rstrip())
    if writer.yields:
        writer.emit("if False: yield")
    writer.dedent()


def function_name(symbol: str) -> str:
    """The Python name of a function."""
    return "f_" + "".join(letter if letter.isalnum() else "_" for letter in symbol)


def give_back(writer: TileWriter, op: Op) -> None:
    """tt.return."""
    writer.emit(f"return {', '.join(writer.uses(op.operands))}".rstrip())


def call_function(writer: TileWriter, op: Op) -> None:
    """tt.call of a function that was not inlined."""
    words = ", ".join(["m", *writer.uses(op.operands)])
    target = f"{function_name(op.attr_str('callee'))}({words})"
    if writer.yields:
        target = f"(yield from {target})"
    results = ", ".join(writer.define(result) for result in op.results)
    writer.emit(f"{results} = {target}" if results else target)


def nothing(writer: TileWriter, op: Op) -> None:
    """An operation without effect here."""


def poison(writer: TileWriter, op: Op) -> None:
    """ub.poison: a value that nobody may look at; zeros here."""
    kind = op.results[0].type
    shape = shape_of(kind)
    if is_pointer(kind):
        value: Any = Pointer(None, Affine(0, (0,) * len(shape), shape, 64))
    else:
        value = np.zeros((1,) * (len(shape) + 1), dtype_of(element_of(kind)))
    writer.alias(op.results[0], writer.constant(value, "poison"))


def barrier(writer: TileWriter, op: Op) -> None:
    """A barrier between the lanes of a program."""
    writer.emit(f"m.barrier({writer.site()})")


LOWERINGS = {
    "tt.func": function,
    "tt.return": give_back,
    "tt.call": call_function,
    "tt.get_program_id": program_id,
    "tt.get_num_programs": program_count,
    "tt.make_range": make_range,
    "tt.splat": shaped(pointer.splat),
    "tt.unsplat": unsplat,
    "tt.broadcast": shaped(shapes.broadcast),
    "tt.expand_dims": expand_dims,
    "tt.reshape": reshape,
    "tt.trans": transpose,
    "tt.join": of_operands(shapes.join),
    "tt.split": of_operands(shapes.split),
    "tt.cat": of_operands(shapes.concatenate, 2),
    "tt.gather": gather,
    "tt.addptr": add_pointer,
    "tt.load": load,
    "tt.store": store,
    "tt.dot": dot,
    "tt.bitcast": bitcast,
    "tt.fp_to_fp": convert,
    "tt.int_to_ptr": to_pointer,
    "tt.ptr_to_int": to_integer,
    "tt.clampf": clamp,
    "tt.mulhiui": lambda writer, op: call(writer, op, integers.high_product_unsigned),
    "tt.precise_sqrt": lambda writer, op: call(writer, op, np.sqrt),
    "tt.precise_divf": lambda writer, op: call(writer, op, np.divide),
    "tt.approx_divf": lambda writer, op: call(writer, op, np.divide),
    "tt.histogram": histogram,
    "ttg.barrier": barrier,
    "gpu.barrier": barrier,
    "llvm.intr.assume": nothing,
    "tt.grid_dependency_wait": nothing,
    "tt.grid_dependency_launch_dependents": nothing,
    "ub.poison": poison,
}
