"""emitasc: structs and pointers of the host side of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_int, parse_string
from npuscope.mlir.dialects.emitc import nothing
from npuscope.mlir.types import element_type

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op


def copy_struct(writer: Writer, op: Op) -> None:
    """emitasc.copy_struct(base): the struct that a kernel argument points at, by value."""
    writer.emit(f"{writer.define(op.results[0])} = {writer.use(op.operands[0])}.copy()")


def member(writer: Writer, op: Op) -> None:
    """emitasc.member {field}."""
    writer.emit(f"{writer.define(op.results[0])} = {writer.use(op.operands[0])}.{parse_string(op.attributes['field'])}")


def set_member(writer: Writer, op: Op) -> None:
    """emitasc.set_member {field}(struct, value)."""
    base, value = writer.uses(op.operands)
    writer.emit(f"{base}.{parse_string(op.attributes['field'])} = {value}")


def pointer_offset(writer: Writer, op: Op) -> None:
    """emitasc.ptr_offset(base[, elements]) {staticOffset}: the pointer that many elements on."""
    base, *dynamic = writer.uses(op.operands)
    static = parse_int(op.attributes["staticOffset"]) if "staticOffset" in op.attributes else 0
    offset = " + ".join([*dynamic, *([str(static)] if static or not dynamic else [])])
    writer.emit(f"{writer.define(op.results[0])} = {base}.offset({offset})")


def reinterpret(writer: Writer, op: Op) -> None:
    """emitasc.reinterpret_cast: the same address as another element type."""
    from npuscope.npu.numbers import dtype_of

    element = element_type(op.results[0].type)
    base = writer.use(op.operands[0])
    try:
        dtype = dtype_of(element)
    except (KeyError, ValueError):
        writer.alias(op.results[0], base)
        return
    writer.emit(f"{writer.define(op.results[0])} = {base}.cast({writer.constant(dtype, 'dtype')})")


def variable(writer: Writer, op: Op) -> None:
    """emitasc.variable: a cell of one scalar."""
    if op.operands:
        initial = writer.use(op.operands[0])
    else:
        initial = str(parse_int(op.attributes["staticInit"])) if "staticInit" in op.attributes else "0"
    writer.emit(f"{writer.define(op.results[0])} = [{initial}]")


def dereference(writer: Writer, op: Op) -> None:
    """emitasc.dereference: what a cell holds, or the struct a pointer points at."""
    base = writer.use(op.operands[0])
    writer.emit(f"{writer.define(op.results[0])} = {base}[0] if isinstance({base}, list) else {base}")


LOWERINGS = {
    "emitasc.copy_struct": copy_struct,
    "emitasc.member": member,
    "emitasc.set_member": set_member,
    "emitasc.ptr_offset": pointer_offset,
    "emitasc.reinterpret_cast": reinterpret,
    "emitasc.variable": variable,
    "emitasc.dereference": dereference,
    "emitasc.declare_py_struct": nothing,
    "emitasc.verbatim": nothing,
}
