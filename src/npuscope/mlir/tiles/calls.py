"""The text of an operation: a call of a function with the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuscope.mlir.reader import Op
    from npuscope.mlir.tiles.program import TileWriter

TileLowering = Callable[["TileWriter", "Op"], None]
"""Writes one operation."""


def call(writer: TileWriter, op: Op, function: Callable[..., Any], *first: str) -> None:
    """`result = function(first..., operands...)`."""
    hint = getattr(function, "__name__", "f")
    name = writer.constant(function, hint if hint.isidentifier() else "f")
    words = ", ".join((*first, *writer.uses(op.operands)))
    results = ", ".join(writer.define(result) for result in op.results)
    writer.emit(f"{results} = {name}({words})" if results else f"{name}({words})")


def pure(function: Callable[..., Any]) -> TileLowering:
    """An operation that is a function of its operands."""
    return lambda writer, op: call(writer, op, function)


def at_site(function: Callable[..., Any]) -> TileLowering:
    """A function whose first argument is the operation's site."""
    return lambda writer, op: call(writer, op, function, str(writer.site()))


def operator(symbol: str) -> TileLowering:
    """An operation that is a Python operator on arrays."""

    def lower(writer: TileWriter, op: Op) -> None:
        one, other = writer.uses(op.operands)
        writer.emit(f"{writer.define(op.results[0])} = {one} {symbol} {other}")

    return lower


def alias(writer: TileWriter, op: Op) -> None:
    """An operation that changes nothing here."""
    writer.alias(op.results[0], writer.use(op.operands[0]))
