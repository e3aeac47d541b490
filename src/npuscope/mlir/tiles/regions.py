"""tt.reduce, tt.scan and tt.map_elementwise: operations that carry a function of single numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from npuscope.mlir.tiles.calls import call
from npuscope.mlir.tiles.cf import blocks
from npuscope.mlir.tiles.kinds import shape_of
from npuscope.mlir.tiles.scf import fresh
from npuscope.tile import lanes, reduce
from npuscope.tile.affine import dense

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter

UFUNCS: dict[str, np.ufunc] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}  # fmt: skip


def _ufunc(op: Op) -> np.ufunc | None:
    """The numpy function that the region of a reduction is; None when it is another."""
    if len(op.operands) != 1 or len(op.regions[0].blocks) != 1 or op.operands[0].type.endswith("xi1>"):
        return None
    block = op.regions[0].blocks[0]
    if len(block.operations) != 2:
        return None
    inner, end = block.operations
    same = [*inner.operands] == block.arguments and end.operands == inner.results
    return UFUNCS.get(inner.name) if same else None


def _function(writer: TileWriter, op: Op) -> str:
    """A local function that does what the region does to arrays of any shape.

    Where ways part in it, each number goes its own way, as a program does.
    """
    region = op.regions[0]
    name = fresh(writer, "combine")
    arguments = ", ".join(writer.define(argument) for argument in region.blocks[0].arguments)
    parts = len(region.blocks) > 1 or any(inner.regions for block in region.blocks for inner in block.operations)
    writer.emit(f"def {name}({arguments}):")
    writer.indent()
    if len(region.blocks) > 1:
        results = blocks(writer, region)
    else:
        *operations, last = region.blocks[0].operations
        writer.body(operations)
        results = writer.uses(last.operands)
    plain = writer.constant(dense, "dense")
    writer.emit(f"return {''.join(f'{plain}({result}), ' for result in results)}".rstrip())
    writer.dedent()
    if not parts:
        return name
    apart = fresh(writer, "combine")
    writer.emit(f"{apart} = {writer.constant(lanes.Apart, 'Apart')}(m, {name})")
    return apart


def reduction(writer: TileWriter, op: Op) -> None:
    """tt.reduce."""
    axis, shape = op.attr_int("axis"), shape_of(op.operands[0].type)
    ufunc = _ufunc(op)
    if ufunc is not None:
        call(writer, op, partial(reduce.reduce_with, ufunc, axis, shape))
        return
    call(writer, op, reduce.reduce_by, _function(writer, op), str(axis), str(shape))


def scan(writer: TileWriter, op: Op) -> None:
    """tt.scan."""
    axis, shape = op.attr_int("axis"), shape_of(op.operands[0].type)
    reverse = op.attributes.get("reverse", "false").startswith("true")
    ufunc = _ufunc(op)
    if ufunc is not None:
        call(writer, op, partial(reduce.scan_with, ufunc, axis, reverse, shape))
        return
    call(writer, op, reduce.scan_by, _function(writer, op), str(axis), str(reverse), str(shape))


def map_elementwise(writer: TileWriter, op: Op) -> None:
    """tt.map_elementwise."""
    shape, pack = shape_of(op.operands[0].type), op.attr_int("pack")
    call(writer, op, lanes.each, _function(writer, op), str(shape), str(pack))


LOWERINGS = {"tt.reduce": reduction, "tt.scan": scan, "tt.map_elementwise": map_elementwise}
