"""What a kernel says and what it swears: tt.print, tt.assert, cf.assert."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_integers
from npuscope.mlir.tiles.kinds import shape_of
from npuscope.tile.printing import Print

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


def print_values(writer: TileWriter, op: Op) -> None:
    """tt.print."""
    signs = parse_integers(op.attributes["isSigned"])
    shapes = [shape_of(operand.type) for operand in op.operands]
    show = Print(op.attr_str("prefix"), op.attributes["hex"].startswith("true"), list(zip(shapes, signs, strict=True)))
    writer.emit(f"{writer.constant(show, 'print')}({', '.join(['m', *writer.uses(op.operands)])})")


def check(key: str, writer: TileWriter, op: Op) -> None:
    """An assertion; its message is the attribute `key`."""
    shape = shape_of(op.operands[0].type)
    words = f"{writer.site()}, {op.attr_str(key)!r}, {shape}, {writer.use(op.operands[0])}"
    writer.emit(f"m.check({words})")


LOWERINGS = {
    "tt.print": print_values,
    "tt.assert": partial(check, "message"),
    "cf.assert": partial(check, "msg"),
}
