"""scf: loops and branches, through which all programs of a batch walk together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.dialects.scf import assign
from npuscope.tile.control import Branch, Loop, Turns

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op, Value
    from npuscope.mlir.tiles.program import TileWriter

ENDS = ("scf.yield", "scf.condition", "scf.reduce")


def inside(operations: list[Op]) -> tuple[list[Op], list[Value]]:
    """The operations of a block before its terminator, and what the terminator passes on."""
    if operations and operations[-1].name in ENDS:
        return operations[:-1], operations[-1].operands
    return operations, []


def fresh(writer: TileWriter, hint: str) -> str:
    """A local that stands for no value of the IR."""
    writer.labels += 1
    return f"_{hint}{writer.labels}"


def for_loop(writer: TileWriter, op: Op) -> None:
    """scf.for: carried values in locals; programs may do different numbers of turns."""
    block = op.regions[0].blocks[0]
    loop = fresh(writer, "loop")
    bounds = ", ".join(writer.uses(op.operands[:3]))
    writer.emit(f"{loop} = {writer.constant(Loop, 'Loop')}(m, {bounds})")
    carried = [writer.define(argument) for argument in block.arguments[1:]]
    assign(writer, carried, writer.uses(op.operands[3:]))
    writer.emit(f"for {writer.define(block.arguments[0])} in {loop}:")
    writer.indent()
    operations, yielded = inside(block.operations)
    writer.body(operations)
    _carry(writer, loop, carried, writer.uses(yielded))
    writer.dedent()
    for result, name in zip(op.results, carried, strict=True):
        writer.alias(result, name)


def _carry(writer: TileWriter, loop: str, carried: list[str], values: list[str]) -> None:
    changed = [(name, value) for name, value in zip(carried, values, strict=True) if name != value]
    assign(writer, [name for name, _ in changed], [f"{loop}.carry({value}, {name})" for name, value in changed])


def while_loop(writer: TileWriter, op: Op) -> None:
    """scf.while: the first region decides and passes values on, the second is the body."""
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    turns = fresh(writer, "turns")
    writer.emit(f"{turns} = {writer.constant(Turns, 'Turns')}(m)")
    carried = [writer.define(argument) for argument in before.arguments]
    assign(writer, carried, writer.uses(op.operands))
    results = [writer.define(result) for result in op.results]
    assign(writer, results, ["None"] * len(results))
    writer.emit("while True:")
    writer.indent()
    if writer.yields:
        writer.emit("yield")
    operations, passed = inside(before.operations)
    writer.body(operations)
    condition, *values = writer.uses(passed)
    assign(writer, results, [f"{turns}.keep({value}, {name})" for name, value in zip(results, values, strict=True)])
    writer.emit(f"if not {turns}.go_on({condition}): break")
    for argument, name in zip(after.arguments, results, strict=True):
        writer.alias(argument, name)
    operations, yielded = inside(after.operations)
    writer.body(operations)
    _carry(writer, turns, carried, writer.uses(yielded))
    writer.dedent()


def branch(writer: TileWriter, op: Op) -> None:
    """scf.if with or without results."""
    name = fresh(writer, "branch")
    writer.emit(f"{name} = {writer.constant(Branch, 'Branch')}(m, {writer.use(op.operands[0])})")
    sides: list[list[str]] = []
    for question, region in zip(("holds", "fails"), op.regions, strict=False):
        side = [fresh(writer, "side") for _ in op.results]
        sides.append(side)
        if not region.blocks:
            continue
        assign(writer, side, ["None"] * len(side))
        writer.emit(f"if {name}.{question}():")
        writer.indent()
        operations, yielded = inside(region.blocks[0].operations)
        writer.body(operations)
        assign(writer, side, writer.uses(yielded))
        writer.dedent()
    writer.emit(f"{name}.end()")
    for index, result in enumerate(op.results):
        writer.emit(f"{writer.define(result)} = {name}.merge({sides[0][index]}, {sides[1][index]})")


LOWERINGS = {"scf.for": for_loop, "scf.while": while_loop, "scf.if": branch}
