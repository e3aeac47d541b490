"""The tree that the reader makes: ops, regions, blocks and values. Types and attributes are raw text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import EllipsisType

from npuscope.errors import UserError
from npuscope.mlir.attributes import parse_int, parse_string
from npuscope.mlir.location import Location


@dataclass(slots=True, eq=False)
class Value:
    """An SSA value; its identity is the object.

    `name` is such as "%5", "%x#1" or "%arg3", "" for a result without a name. `hint` is the name that wraps its
    location, the Python variable where the front end writes that.
    """

    name: str
    type: str
    hint: str | None = None


@dataclass(slots=True, eq=False)
class Op:
    """One operation; `attributes` holds properties and attributes as raw text, a unit attribute as "unit"."""

    name: str
    operands: list[Value]
    results: list[Value]
    attributes: dict[str, str]
    regions: list[Region] = field(repr=False)
    successors: list[Block] = field(repr=False)
    location: Location

    def has(self, key: str) -> bool:
        """Whether the op has the attribute `key`."""
        return key in self.attributes

    def attr_int(self, key: str, default: int | EllipsisType = ...) -> int:
        """The integer attribute `key`, else `default`. Raises UserError when it is not there or no integer."""
        text = self.attributes.get(key)
        if text is None and not isinstance(default, EllipsisType):
            return default
        try:
            return parse_int(self._required(key, text))
        except UserError as error:
            raise self._faulty(key, error) from None

    def attr_str(self, key: str, default: str | EllipsisType = ...) -> str:
        """The string or symbol attribute `key`, else `default`. Raises UserError when it is not there or no string."""
        text = self.attributes.get(key)
        if text is None and not isinstance(default, EllipsisType):
            return default
        try:
            return parse_string(self._required(key, text))
        except UserError as error:
            raise self._faulty(key, error) from None

    def walk(self) -> Iterator[Op]:
        """This op and all ops inside it, each before its own inner ops, in the order of the text."""
        waiting = [self]
        while waiting:
            op = waiting.pop()
            yield op
            for region in reversed(op.regions):
                for block in reversed(region.blocks):
                    waiting.extend(reversed(block.operations))

    @staticmethod
    def _required(key: str, text: str | None) -> str:
        if text is None:
            raise UserError("it is missing")
        return text

    def _faulty(self, key: str, error: UserError) -> UserError:
        frame = self.location.frames[0] if self.location.frames else None
        where = f"{frame.file}:{frame.line}: " if frame else ""
        return UserError(f"{where}attribute {key!r} of {self.name}: {error}")


@dataclass(slots=True, eq=False)
class Block:
    """Ops in order; `label` is such as "^bb1" ("^bb0" for an entry block written without one)."""

    label: str
    arguments: list[Value] = field(default_factory=list)
    operations: list[Op] = field(default_factory=list, repr=False)


@dataclass(slots=True, eq=False)
class Region:
    """Blocks in the order of the text, the entry block first; no block for `({})`."""

    blocks: list[Block] = field(default_factory=list)
