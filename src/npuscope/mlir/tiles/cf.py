"""cf: blocks that jump forward, as an early `return` leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_integers
from npuscope.mlir.dialects.scf import assign
from npuscope.mlir.tiles.scf import fresh
from npuscope.tile.control import Paths

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter
    from npuscope.mlir.tree import Block, Region, Value

JUMPS = ("cf.br", "cf.cond_br")


def blocks(writer: TileWriter, region: Region) -> list[str]:
    """Every block after those that lead to it, for the programs that come to it; returns the names of what the region
    returns. Raises Unsupported for a way back."""
    ordered = _ordered(region.blocks[0])
    numbers = {id(block): number for number, block in enumerate(ordered)}
    paths = fresh(writer, "paths")
    for block in ordered[1:]:
        names = [writer.define(argument) for argument in block.arguments]
        assign(writer, names, ["None"] * len(names))
    ends = [block.operations[-1] for block in ordered if block.operations[-1].name not in JUMPS]
    results = [fresh(writer, "result") for _ in (ends[0].operands if ends else ())]
    assign(writer, results, ["None"] * len(results))
    writer.emit(f"{paths} = {writer.constant(Paths, 'Paths')}(m)")
    for number, block in enumerate(ordered):
        if number:
            writer.emit(f"if {paths}.enter({number}):")
            writer.indent()
        *operations, last = block.operations
        if last.name in JUMPS:
            writer.body(operations)
            if any(numbers[id(target)] <= number for target in last.successors):
                raise writer.unsupported_operation(last, "jumps back")
            _leave(writer, last, paths, numbers)
        else:
            # A return ends only the way of those who are here.
            writer.body(operations)
            for name, value in zip(results, writer.uses(last.operands), strict=True):
                writer.emit(f"{name} = {paths}.pass_on({value}, {name})")
        if number:
            writer.dedent()
    writer.emit(f"{paths}.end()")
    return results


def _ordered(first: Block) -> list[Block]:
    """The blocks that can be reached, each after all that lead to it (as far as there is no way back)."""
    ordered: list[Block] = []
    seen = {id(first)}
    stack = [(first, iter(first.operations[-1].successors))]
    while stack:
        block, ways = stack[-1]
        for target in ways:
            if id(target) not in seen:
                seen.add(id(target))
                stack.append((target, iter(target.operations[-1].successors)))
                break
        else:
            ordered.append(block)
            stack.pop()
    return ordered[::-1]


def _leave(writer: TileWriter, op: Op, paths: str, numbers: dict[int, int]) -> None:
    if op.name == "cf.br":
        _pass(writer, paths, op.successors[0], op.operands, "")
        writer.emit(f"{paths}.jump({numbers[id(op.successors[0])]})")
        return
    condition = writer.use(op.operands[0])
    _, first, second = parse_integers(op.attributes["operandSegmentSizes"])
    one, other = op.successors
    _pass(writer, paths, one, op.operands[1 : 1 + first], f", {condition}, True")
    _pass(writer, paths, other, op.operands[1 + first : 1 + first + second], f", {condition}, False")
    writer.emit(f"{paths}.part({condition}, {numbers[id(one)]}, {numbers[id(other)]})")


def _pass(writer: TileWriter, paths: str, block: Block, values: list[Value], when: str) -> None:
    for argument, value in zip(block.arguments, writer.uses(values), strict=True):
        name = writer.use(argument)
        writer.emit(f"{name} = {paths}.pass_on({value}, {name}{when})")
