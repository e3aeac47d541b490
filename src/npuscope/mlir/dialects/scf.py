"""scf: structured loops and branches become Python's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.attributes import parse_array

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op, Value


def assign(writer: Writer, names: list[str], values: list[str]) -> None:
    """Assign simultaneously."""
    pairs = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
    if pairs:
        writer.emit(f"{', '.join(name for name, _ in pairs)} = {', '.join(value for _, value in pairs)}")


def _split(operations: list[Op]) -> tuple[list[Op], list[Value]]:
    """The operations of a block before its terminator, and what the terminator passes on."""
    if operations and operations[-1].name in ("scf.yield", "scf.condition", "scf.reduce"):
        return operations[:-1], operations[-1].operands
    return operations, []


def for_loop(writer: Writer, op: Op) -> None:
    """scf.for(lower, upper, step, initial values...): a half-open range, carried values in locals."""
    block = op.regions[0].blocks[0]
    low, high, step = writer.uses(op.operands[:3])
    carried = [writer.define(argument) for argument in block.arguments[1:]]
    assign(writer, carried, writer.uses(op.operands[3:]))
    counter = writer.define(block.arguments[0])
    writer.emit(f"for {counter} in range({low}, {high}, {step}):")
    writer.indent()
    operations, yielded = _split(block.operations)
    writer.body(operations)
    assign(writer, carried, writer.uses(yielded))
    writer.dedent()
    for result, name in zip(op.results, carried, strict=True):
        writer.alias(result, name)


def while_loop(writer: Writer, op: Op) -> None:
    """scf.while: the first region decides and passes values on, the second is the body."""
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    carried = [writer.define(argument) for argument in before.arguments]
    assign(writer, carried, writer.uses(op.operands))
    results = [writer.define(result) for result in op.results]
    writer.emit("while True:")
    writer.indent()
    writer.while_depth += 1
    outside = writer.varying
    writer.varying = outside | _varying(op)
    operations, passed = _split(before.operations)
    writer.body(operations)
    condition, *values = writer.uses(passed)
    assign(writer, results, values)
    writer.emit(f"if not ({condition}): break")
    for argument, name in zip(after.arguments, results, strict=True):
        writer.alias(argument, name)
    operations, yielded = _split(after.operations)
    writer.body(operations)
    assign(writer, carried, writer.uses(yielded))
    writer.while_depth -= 1
    writer.varying = outside
    writer.dedent()


def _varying(loop: Op) -> set[int]:
    """Values (by id) that may be others in each turn of a loop; constants are not among them."""
    values = [value for region in loop.regions for block in region.blocks for value in block.arguments]
    values += [result for op in loop.walk() if op.name != "arith.constant" for result in op.results]
    return {id(value) for value in values}


def branch(writer: Writer, op: Op) -> None:
    """scf.if with or without results."""
    condition = writer.use(op.operands[0])
    results = [writer.define(result) for result in op.results]
    for keyword, region in zip((f"if {condition}:", "else:"), op.regions, strict=False):
        if not region.blocks or (keyword == "else:" and not region.blocks[0].operations):
            continue
        writer.emit(keyword)
        writer.indent()
        operations, yielded = _split(region.blocks[0].operations)
        writer.body(operations)
        assign(writer, results, writer.uses(yielded))
        writer.dedent()


def index_switch(writer: Writer, op: Op) -> None:
    """scf.index_switch: region 0 is the default, the others belong to the cases in order."""
    value = writer.use(op.operands[0])
    results = [writer.define(result) for result in op.results]
    cases = parse_array(op.attributes["cases"])
    keyword = "if"
    for case, region in zip(cases, op.regions[1:], strict=True):
        writer.emit(f"{keyword} {value} == {case}:")
        _arm(writer, region.blocks[0].operations, results)
        keyword = "elif"
    writer.emit("else:" if cases else "if True:")
    _arm(writer, op.regions[0].blocks[0].operations, results)


def _arm(writer: Writer, operations: list[Op], results: list[str]) -> None:
    writer.indent()
    inner, yielded = _split(operations)
    writer.body(inner)
    assign(writer, results, writer.uses(yielded))
    writer.dedent()


def execute_region(writer: Writer, op: Op) -> None:
    """scf.execute_region with one block: its operations in place."""
    inner, yielded = _split(op.regions[0].blocks[0].operations)
    writer.body(inner)
    for result, value in zip(op.results, yielded, strict=True):
        writer.alias(result, writer.use(value))


LOWERINGS = {
    "scf.for": for_loop,
    "scf.while": while_loop,
    "scf.if": branch,
    "scf.index_switch": index_switch,
    "scf.execute_region": execute_region,
}
