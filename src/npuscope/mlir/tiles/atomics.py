"""tt.atomic_*: reads and writes in one, and those that order others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuscope.mlir.tiles.kinds import dtype_of, pointee_of, shape_of
from npuscope.mlir.tiles.scf import fresh
from npuscope.tile.polling import Poll

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter


def _target(writer: TileWriter, op: Op) -> str:
    """The element type and the shape of what the first operand points to, as text."""
    pointer = op.operands[0].type
    return f"{writer.constant(dtype_of(pointee_of(pointer)), 'dtype')}, {shape_of(pointer)}"


def read_modify_write(writer: TileWriter, op: Op) -> None:
    """tt.atomic_rmw."""
    numbers = f"{writer.site()}, {op.attr_int('atomic_rmw_op')}, {op.attr_int('sem')}, {writer.is_used(op.results[0])}"
    words = ", ".join(writer.uses(op.operands))
    writer.emit(f"{writer.define(op.results[0])} = m.atomic({numbers}, {_target(writer, op)}, {words})")


def compare_and_swap(writer: TileWriter, op: Op) -> None:
    """tt.atomic_cas."""
    words = ", ".join(writer.uses(op.operands))
    call = f"m.compare_and_swap({writer.site()}, {op.attr_int('sem')}, {_target(writer, op)}, {words})"
    writer.emit(f"{writer.define(op.results[0])} = {call}")


def load(writer: TileWriter, op: Op) -> None:
    """tt.atomic_load with or without a mask."""
    words = ", ".join(writer.uses(op.operands))
    call = f"m.atomic_load({writer.site()}, {op.attr_int('sem')}, {_target(writer, op)}, {words})"
    writer.emit(f"{writer.define(op.results[0])} = {call}")


def store(writer: TileWriter, op: Op) -> None:
    """tt.atomic_store with or without a mask."""
    words = ", ".join(writer.uses(op.operands))
    writer.emit(f"m.atomic_store({writer.site()}, {op.attr_int('sem')}, {_target(writer, op)}, {words})")


def poll(writer: TileWriter, op: Op) -> None:
    """tt.atomic_poll: the program waits, and the others have their turns, until all its elements are as expected."""
    pointer, expected, *limit = writer.uses(op.operands)
    name = fresh(writer, "poll")
    writer.emit(f"{name} = {writer.constant(Poll, 'Poll')}({', '.join([expected, *limit])})")
    call = f"m.atomic_load({writer.site()}, {op.attr_int('sem')}, {_target(writer, op)}, {pointer})"
    writer.emit(f"while not {name}.over({call}): yield")
    writer.emit(f"{writer.define(op.results[0])} = {name}.matched")


LOWERINGS = {
    "tt.atomic_rmw": read_modify_write,
    "tt.atomic_cas": compare_and_swap,
    "tt.atomic_load": load,
    "tt.atomic_store": store,
    "tt.atomic_poll": poll,
}
