"""What a kernel says, what it swears and where it stops: tt.print, tt.assert, cf.assert, breakpoint()."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_integers
from npuscope.mlir.tiles.kinds import shape_of
from npuscope.mlir.tiles.scf import fresh
from npuscope.tile.printing import Print
from npuscope.tile.stopping import PREFIX, visible

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


def print_values(writer: TileWriter, op: Op) -> None:
    """tt.print, and what stands for a breakpoint."""
    if op.attr_str("prefix").startswith(PREFIX):
        stop(writer, op)
        return
    signs = parse_integers(op.attributes["isSigned"])
    shapes = [shape_of(operand.type) for operand in op.operands]
    show = Print(op.attr_str("prefix"), op.attributes["hex"].startswith("true"), list(zip(shapes, signs, strict=True)))
    writer.emit(f"{writer.constant(show, 'print')}({', '.join(['m', *writer.uses(op.operands)])})")


def stop(writer: TileWriter, op: Op) -> None:
    """Python's `breakpoint()` at the user's line, in a function whose locals are the kernel's variables."""
    names = op.attr_str("prefix").split()[1:]
    function = fresh(writer, "kernel")
    shown = [
        f"{writer.constant(partial(visible, shape_of(operand.type)), 'visible')}({writer.use(operand)})"
        for operand in op.operands
    ]
    writer.emit(f"def {function}({', '.join(names)}): breakpoint()")
    writer.emit(f"{function}({', '.join(shown)})")
    writer.alone = True


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
