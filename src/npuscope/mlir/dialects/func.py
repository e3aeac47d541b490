"""func: functions become generator functions, calls delegate to them, so that a helper may wait too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuscope.mlir.program import Writer
    from npuscope.mlir.reader import Op


def function(writer: Writer, op: Op) -> None:
    """func.func: ``def name(core, ...)``; a generator even when nothing in it waits."""
    from npuscope.mlir.program import function_name

    block = op.regions[0].blocks[0]
    if len(op.regions[0].blocks) != 1:
        raise writer.unsupported("has unstructured control flow")
    parameters = [writer.define(argument) for argument in block.arguments]
    writer.emit(f"def {function_name(op.attr_str('sym_name'))}({', '.join(['core', *parameters])}):")
    writer.indent()
    writer.emit("if 0: yield")
    writer.body(block.operations)
    writer.dedent()


def give_back(writer: Writer, op: Op) -> None:
    """func.return."""
    values = writer.uses(op.operands)
    writer.emit(f"return {', '.join(values)}".rstrip())


def call(writer: Writer, op: Op) -> None:
    """func.call of a function of the same module."""
    from npuscope.mlir.program import function_name

    callee = function_name(op.attributes["callee"].strip().lstrip("@").strip('"'))
    arguments = ", ".join(["core", *writer.uses(op.operands)])
    names = [writer.define(result) for result in op.results]
    target = f"{', '.join(names)} = " if names else ""
    writer.emit(f"{target}yield from {callee}({arguments})")


LOWERINGS = {"func.func": function, "func.return": give_back, "func.call": call}
