"""memref: small scalar arrays in a core's stack memory are Python lists; pointers pass through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.types import shape

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op


def allocate(writer: Writer, op: Op) -> None:
    """memref.alloca / memref.alloc of a static shape: a flat list of zeros."""
    extents = shape(op.results[0].type)
    if extents is None or any(extent is None for extent in extents):
        raise writer.unsupported("has a dynamic shape")
    count = 1
    for extent in extents:
        count *= extent or 0
    writer.emit(f"{writer.define(op.results[0])} = [0] * {count}")


def _flat_index(writer: Writer, op: Op, base: int) -> str:
    extents = shape(op.operands[base].type) or ()
    indices = writer.uses(op.operands[base + 1 :])
    text = "0"
    for extent, index in zip(extents, indices, strict=True):
        text = index if text == "0" else f"({text}) * {extent} + {index}"
    return text


def load(writer: Writer, op: Op) -> None:
    """memref.load(array, indices...)."""
    index = _flat_index(writer, op, 0)
    writer.emit(f"{writer.define(op.results[0])} = {writer.use(op.operands[0])}[{index}]")


def store(writer: Writer, op: Op) -> None:
    """memref.store(value, array, indices...)."""
    index = _flat_index(writer, op, 1)
    writer.emit(f"{writer.use(op.operands[1])}[{index}] = {writer.use(op.operands[0])}")


def cast(writer: Writer, op: Op) -> None:
    """memref.cast: another type for the same storage."""
    writer.alias(op.results[0], writer.use(op.operands[0]))


LOWERINGS = {
    "memref.alloca": allocate,
    "memref.alloc": allocate,
    "memref.load": load,
    "memref.store": store,
    "memref.cast": cast,
}
