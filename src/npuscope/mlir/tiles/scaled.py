"""tt.dot_scaled: products of tiles whose elements share scales by groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_integers
from npuscope.mlir.tiles.kinds import shape_of
from npuscope.tile.scaled import FORMATS, Factor, dot_scaled

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


def lower(writer: TileWriter, op: Op) -> None:
    """tt.dot_scaled. Raises Unsupported for an element format that is not known."""
    counts = parse_integers(op.attributes["operandSegmentSizes"])
    operands = iter(op.operands)
    left, right, total, left_scale, right_scale = (next(operands) if count else None for count in counts)
    assert left is not None and right is not None and total is not None
    factors = []
    for side, value, scale in (("a", left, left_scale), ("b", right, right_scale)):
        number = op.attr_int(f"{side}_elem_type")
        if number not in FORMATS:
            raise writer.unsupported(f"has elements of format {number}, which is not supported")
        packed = not op.attributes.get("lhs_k_pack" if side == "a" else "rhs_k_pack", "true").startswith("false")
        shape = shape_of(value.type)
        depth_axis = len(shape) - (1 if side == "a" else 2)
        factors.append(Factor(shape, FORMATS[number], depth_axis, packed, shape_of(scale.type) if scale else ()))
    words = [writer.use(value) if value is not None else "None" for value in (left, right, left_scale, right_scale)]
    halves = [writer.constant(factor, "factor") for factor in factors]
    name = writer.constant(dot_scaled, "dot_scaled")
    call = f"{name}({', '.join([*halves, *words, writer.use(total)])})"
    writer.emit(f"{writer.define(op.results[0])} = {call}")


LOWERINGS = {"tt.dot_scaled": lower}
