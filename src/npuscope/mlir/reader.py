"""Reads MLIR's generic textual form into a tree of ops with source locations.

Grammar: frontends.md 1. One pass with compiled patterns and a stack of open regions: no recursion, any depth. Types and
attributes stay raw text. Aliases and locations may be defined after their use; they are resolved when the text ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from npuscope.errors import UserError
from npuscope.mlir.attributes import Aliases, parse_dictionary
from npuscope.mlir.location import UNKNOWN, LocationReader, NameMeaning
from npuscope.mlir.tree import Block, Op, Region, Value
from npuscope.mlir.types import (
    STRING_PATTERN,
    MlirSyntaxError,
    balanced_end,
    expected,
    function_type,
    function_type_end,
    type_end,
)

__all__ = ["Block", "MlirSyntaxError", "Op", "Region", "Value", "parse_module"]


# Ops that see no value from outside. Others may be isolated too: then the text has no such use, and nothing is lost.
_ISOLATED = frozenset(
    {"builtin.module", "func.func", "tt.func", "llvm.func", "emitc.func", "gpu.func", "gpu.module", "spirv.func"}
)

_S = r"[ \t\r\n]*+(?://[^\n]*+[ \t\r\n]*+)*+"  # white space and comments
_ID = r"[\w$.\-]+"
_SPACE = re.compile(_S)
_RESULTS = re.compile(r'(%[^="\n]*+)=\s*', re.ASCII)
_NAME = re.compile(r'"([^"\\\n]+)"\s*', re.ASCII)
_OPERANDS = re.compile(rf'\(([^()"]*+)\){_S}', re.ASCII)
_SUCCESSORS = re.compile(rf'\[([^\[\]"]*+)\]{_S}', re.ASCII)
_RESULT = re.compile(rf"(%{_ID})(?:\s*:\s*(\d{{1,6}}))?", re.ASCII)
_OPERAND = re.compile(rf"%{_ID}(?:#\d{{1,6}})?", re.ASCII)
_LABEL = re.compile(rf"\^{_ID}", re.ASCII)
_FLAT_DICTIONARY = re.compile(rf'\{{[^{{}}"]*+(?:{STRING_PATTERN}[^{{}}"]*+)*+\}}')  # no dictionary inside it
_HEAD = re.compile(
    rf"(?:{_RESULTS.pattern})?{_NAME.pattern}{_OPERANDS.pattern}"
    rf"(?:{_SUCCESSORS.pattern})?(?:<({_FLAT_DICTIONARY.pattern})>{_S})?",
    re.ASCII,
)
_REGION_OPEN = re.compile(rf"\({_S}\{{{_S}")
_REGION_NEXT = re.compile(rf"\}}{_S}(?:(,){_S}\{{|\)){_S}")
_COLON = re.compile(rf":{_S}")
# The usual end of an op: types without strings, then a location with at most two levels of brackets, then a new line.
_FLAT_LOC = rf'[^()\n"]*+(?:{STRING_PATTERN}[^()\n"]*+)*+'
_NESTED_LOC = rf'[^()\n"]*+(?:(?:{STRING_PATTERN}|\({_FLAT_LOC}\))[^()\n"]*+)*+'
_TAIL = re.compile(rf': (\([^"{{}}\n/]*\) ->[^"{{}}\n/]*?)(?: loc\(({_NESTED_LOC})\))?[ \t]*\r?\n[ ]*+', re.ASCII)
_LOC = re.compile(r"loc\s*\(", re.ASCII)
_ARGUMENT = re.compile(rf"(%{_ID})\s*:\s*", re.ASCII)
_ALIAS = re.compile(r"([#!][A-Za-z_$][\w$]*)[ \t]*=[ \t]*", re.ASCII)
_ALIAS_PIECE = re.compile(rf'{STRING_PATTERN}|[(\[{{<"\n]|//|->|[<>]=')
_LONGEST_SHARED = 4096  # characters of an attribute dictionary that is kept to be found again


def parse_module(text: str, *, names: NameMeaning = "variable") -> Op:
    """The one outermost op of `text`, MLIR in generic form (`"dialect.op"(...) ... : (...) -> ...`).

    Arguments of a builtin.module's block are dropped: front ends add one only to make MLIR print the generic form.
    `names` says what a name wrapped around a file position is: the variable assigned to, or the enclosing function
    (CATLASS). Raises MlirSyntaxError.
    """
    return _Reader(text, names).module()


@dataclass(slots=True, eq=False)
class _Head:
    """An op whose types are still to be read."""

    op: Op
    result_text: str | None
    offset: int


@dataclass(slots=True, eq=False)
class _Scope:
    """An open region, and what to restore or still to find when it closes."""

    head: _Head
    region: Region
    outer_values: dict[str, Value] | None  # the table of the enclosing region, where this one is isolated from it
    block: Block | None = None
    hidden: dict[str, Value | None] = field(default_factory=dict)  # names defined here -> what they mean outside
    wanted: dict[str, tuple[Value, int]] = field(default_factory=dict)  # used, not yet defined; offset of the first use
    labels: dict[str, Block] = field(default_factory=dict)
    wanted_labels: dict[str, int] = field(default_factory=dict)


class _Reader:
    """The state of one pass over a text. `position` is always just after white space and comments."""

    def __init__(self, text: str, names: NameMeaning) -> None:
        self._text = text
        self._names: NameMeaning = names
        self._top = Region([Block("^bb0")])
        outside = _Head(Op("", [], [], {}, [self._top], [], UNKNOWN), None, 0)
        self._scopes = [_Scope(outside, self._top, None, self._top.blocks[0])]
        self._values: dict[str, Value] = {}
        self._signatures: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._dictionaries: dict[str, dict[str, str]] = {}
        self._aliases: dict[str, tuple[int, str]] = {}  # name -> where and as what it is defined
        self._location_aliases: dict[str, int] = {}  # name -> offset of what its loc( encloses
        self._op_locations: list[tuple[Op, str, int]] = []
        self._value_locations: list[tuple[Value, str, int]] = []

    def module(self) -> Op:
        """Reads the whole text; returns its outermost op."""
        text, size = self._text, len(self._text)
        position = self._skip(0)
        while position < size:
            char = text[position]
            if char in '"%':
                position = self._op(position)
            elif len(self._scopes) == 1:
                position = self._outside(position)
            elif char == "}":
                position = self._close_region(position)
            elif char == "^":
                position = self._block(position)
            else:
                position = self._comment(position, "an op in generic form (\"dialect.op\"(...)) or '}'")
        return self._finish()

    def _finish(self) -> Op:
        if len(self._scopes) > 1:
            name = self._scopes[-1].head.op.name
            raise expected(self._text, len(self._text), f"'}}' to close the region of {name}")
        self._leave_scope(self._scopes[0])
        outermost = self._top.blocks[0].operations
        if not outermost:
            raise expected(self._text, len(self._text), 'an op in generic form ("builtin.module"(...))')
        root = outermost[0]
        for region in root.regions if root.name == "builtin.module" else ():
            for block in region.blocks:
                block.arguments.clear()
        self._resolve_locations()
        if self._aliases:
            _expand_aliases(root, Aliases(self._text, self._aliases))
        return root

    def _resolve_locations(self) -> None:
        reader = LocationReader(self._text, self._location_aliases, self._names)
        for op, spelling, offset in self._op_locations:
            op.location = location = reader.read(spelling, offset)
            if location.names:
                for result in op.results:
                    result.hint = location.names[0]
        for value, spelling, offset in self._value_locations:
            value.hint = next(iter(reader.read(spelling, offset).names), None)

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def _comment(self, position: int, what: str) -> int:
        end = self._skip(position)
        if end == position:
            raise expected(self._text, position, what)
        return end

    # Outside the outermost op: aliases and the resources at the end of a file

    def _outside(self, position: int) -> int:
        text = self._text
        if text.startswith("{-#", position):
            end = text.find("#-}", position)
            if end < 0:
                raise MlirSyntaxError(text, position, "'{-#' is never closed")
            return self._skip(end + 3)
        if text[position] not in "#!":
            return self._comment(position, 'an op in generic form ("dialect.op"(...)) or an alias definition')
        match = _ALIAS.match(text, position)
        if match is None:
            raise expected(text, position, "an alias definition (#name = ... or !name = ...)")
        name, begin = match.group(1), match.end()
        if name in self._aliases or name in self._location_aliases:
            raise MlirSyntaxError(text, position, f"{name} is defined twice")
        location = _LOC.match(text, begin) if name[0] == "#" else None
        if location is not None:
            self._location_aliases[name] = location.end()
            return self._skip(balanced_end(text, location.end() - 1))
        end = self._alias_end(begin)
        value = text[begin:end].strip()
        if not value:
            raise MlirSyntaxError(text, begin, f"{name} stands for nothing")
        self._aliases[name] = position, value
        return self._skip(end)

    def _alias_end(self, position: int) -> int:
        """The end of the line, or of a later one where a bracket is still open."""
        text = self._text
        while (match := _ALIAS_PIECE.search(text, position)) is not None:
            if match.group() in ("\n", "//"):
                return match.start()
            bracket = match.group() in ("(", "[", "{", "<")
            position = balanced_end(text, match.start()) if bracket else match.end()
        return len(text)

    # Ops

    def _op(self, position: int) -> int:
        text = self._text
        match = _HEAD.match(text, position)
        if match is None:
            raise self._head_error(position)
        result_text, name, operand_text, successor_text, properties = match.groups()
        operands = self._operands(operand_text, match.start(3)) if operand_text else []
        successors = self._successors(successor_text, match.start(4)) if successor_text else []
        op = Op(name, operands, [], {}, [], successors, UNKNOWN)
        self._current_block(position).operations.append(op)
        head = _Head(op, result_text, position)
        position = match.end()
        if properties is not None:
            self._add_attributes(op, properties, match.start(5))
        elif text.startswith("<{", position):
            position = self._attributes(op, position + 1)
            if not text.startswith(">", position):
                raise expected(text, position, f"'>' after the properties of {name}")
            position = self._skip(position + 1)
        if text.startswith("(", position):
            match = _REGION_OPEN.match(text, position)
            if match is None:
                raise expected(text, self._skip(position + 1), f"'{{' of a region of {name}")
            self._open_region(head)
            return match.end()
        return self._tail(head, position)

    def _head_error(self, position: int) -> MlirSyntaxError:
        """What keeps the text at `position` from being the beginning of an op."""
        text = self._text
        if text[position] == "%":
            match = _RESULTS.match(text, position)
            if match is None:
                return expected(text, position, "results followed by '='")
            position = match.end()
        match = _NAME.match(text, position)
        if match is None:
            return expected(text, position, "the name of an op in quotes")
        if not text.startswith("(", match.end()):
            return expected(text, match.end(), f"'(' before the operands of {match.group(1)}")
        return expected(text, match.end() + 1, f"operands of {match.group(1)} such as %0, and ')'")

    def _current_block(self, position: int) -> Block:
        scope = self._scopes[-1]
        if scope.block is None:
            scope.block = Block("^bb0")
            scope.region.blocks.append(scope.block)
        elif len(self._scopes) == 1 and scope.block.operations:
            raise expected(self._text, position, "the end after the outermost op")
        return scope.block

    def _attributes(self, op: Op, position: int) -> int:
        """Reads the dictionary at `position` into the op's attributes."""
        text = self._text
        if not text.startswith("{", position):
            raise expected(text, position, f"'{{' of the attributes of {op.name}")
        match = _FLAT_DICTIONARY.match(text, position)
        end = match.end() if match else balanced_end(text, position)
        self._add_attributes(op, text[position:end], position)
        return self._skip(end)

    def _add_attributes(self, op: Op, raw: str, offset: int) -> None:
        entries = self._dictionaries.get(raw)
        if entries is None:
            try:
                entries = parse_dictionary(raw)
            except MlirSyntaxError as error:
                raise error.within(self._text, offset) from None
            except UserError as error:
                raise MlirSyntaxError(self._text, offset, str(error)) from None
            if len(raw) <= _LONGEST_SHARED:
                self._dictionaries[raw] = entries
        for twice in op.attributes.keys() & entries.keys() if op.attributes else ():
            raise MlirSyntaxError(self._text, offset, f"attribute {twice!r} of {op.name} is given twice")
        op.attributes.update(entries)

    def _tail(self, head: _Head, position: int) -> int:
        """Reads what follows the regions: attributes, types and location; defines the results."""
        text, op = self._text, head.op
        if text.startswith("{", position):
            position = self._attributes(op, position)
        match = _TAIL.match(text, position)
        signature = self._signatures.get(match.group(1)) if match else None
        if match is not None and signature is not None:
            end = match.end()
            if match.group(2) is not None:
                self._op_locations.append((op, match.group(2), match.start(2)))
        else:
            signature, end = self._types(op, position)
            if (location := self._location(end)) is not None:
                spelling, offset, end = location
                self._op_locations.append((op, spelling, offset))
        inputs, outputs = signature
        if len(inputs) != len(op.operands):
            problem = f"{op.name} has {len(op.operands)} operands but types for {len(inputs)}"
            raise MlirSyntaxError(text, position, problem)
        if outputs or head.result_text is not None:
            self._results(head, outputs)
        return end

    def _types(self, op: Op, position: int) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], int]:
        """The operand and result types after `:`, and the position after them."""
        text = self._text
        colon = _COLON.match(text, position)
        if colon is None:
            raise expected(text, position, f"':' before the types of {op.name}")
        end = function_type_end(text, colon.end())
        raw = text[colon.end() : end]
        signature = self._signatures.get(raw)
        if signature is None:
            try:
                signature = self._signatures[raw] = function_type(raw)
            except MlirSyntaxError as error:
                raise error.within(text, colon.end()) from None
        return signature, self._skip(end)

    def _location(self, position: int) -> tuple[str, int, int] | None:
        """What the `loc(...)` at `position` encloses, its offset, and the position after it; None without one."""
        match = _LOC.match(self._text, position)
        if match is None:
            return None
        end = balanced_end(self._text, match.end() - 1)
        return self._text[match.end() : end - 1], match.end(), self._skip(end)

    # Values

    def _operands(self, operand_text: str, offset: int) -> list[Value]:
        found = [self._values.get(name) for name in operand_text.split(", ")]
        operands = [value for value in found if value is not None]
        if len(operands) == len(found):
            return operands
        if not operand_text.strip():
            return []
        operands = []
        for piece in operand_text.split(","):
            operands.append(self._use(piece.strip(), offset + len(piece) - len(piece.lstrip())))
            offset += len(piece) + 1
        return operands

    def _use(self, name: str, offset: int) -> Value:
        """The value that `name` means here; a new one, to be defined later, when it means none yet."""
        if _OPERAND.fullmatch(name) is None:
            raise expected(self._text, offset, "an operand such as %0")
        key = name.removesuffix("#0")
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = Value(name, "")
            self._scopes[-1].wanted[key] = (value, offset)
        return value

    def _define(self, key: str, name: str, type_text: str, offset: int) -> Value:
        scope = self._scopes[-1]
        if key in scope.hidden:
            raise MlirSyntaxError(self._text, offset, f"value {name} is defined twice")
        wanted = scope.wanted.pop(key, None)
        if wanted is not None:
            scope.hidden[key] = None
            value = wanted[0]
            value.name, value.type = name, type_text
        else:
            scope.hidden[key] = self._values.get(key)
            value = self._values[key] = Value(name, type_text)
        return value

    def _results(self, head: _Head, types: tuple[str, ...]) -> None:
        """Defines the results that stand before the op; a group `%0:2` is %0#0 and %0#1, and %0 means %0#0."""
        results = head.op.results
        if head.result_text is None:  # results that nothing can use
            results.extend(Value("", type_text) for type_text in types)
            return
        names: list[tuple[str, str]] = []
        for piece in head.result_text.split(","):
            match = _RESULT.fullmatch(piece.strip())
            if match is None:
                raise expected(self._text, head.offset, "results such as %0 or %0:2 before '='")
            base, count = match.group(1), int(match.group(2) or 1)
            indices = range(min(count, len(types) + 1))  # one too many is enough to be refused below
            names += [(base, base)] if count == 1 else [(f"{base}#{i}" if i else base, f"{base}#{i}") for i in indices]
        if len(names) != len(types):
            problem = f"{head.op.name} has {len(types)} result types, which is not what stands before '='"
            raise MlirSyntaxError(self._text, head.offset, problem)
        for (key, name), type_text in zip(names, types, strict=True):
            results.append(self._define(key, name, type_text, head.offset))

    # Regions and blocks

    def _open_region(self, head: _Head) -> None:
        region = Region()
        head.op.regions.append(region)
        outer_values = self._values if head.op.name in _ISOLATED else None
        if outer_values is not None:
            self._values = {}
        self._scopes.append(_Scope(head, region, outer_values))

    def _close_region(self, position: int) -> int:
        scope = self._scopes[-1]
        match = _REGION_NEXT.match(self._text, position)
        if match is None:
            what = f"',' and a region, or ')' after the regions of {scope.head.op.name}"
            raise expected(self._text, self._skip(position + 1), what)
        self._leave_scope(scope)
        self._scopes.pop()
        if match.group(1):
            self._open_region(scope.head)
            return match.end()
        return self._tail(scope.head, match.end())

    def _leave_scope(self, scope: _Scope) -> None:
        """Checks that all labels are defined; gives the names back the meaning that they have outside."""
        for label, offset in scope.wanted_labels.items():
            raise MlirSyntaxError(self._text, offset, f"block {label} is not defined in this region")
        if scope.outer_values is None and len(self._scopes) > 1:
            for name, outer in scope.hidden.items():
                if outer is None:
                    del self._values[name]
                else:
                    self._values[name] = outer
            self._scopes[-2].wanted.update(scope.wanted)
            return
        for name, (_, offset) in scope.wanted.items():
            raise MlirSyntaxError(self._text, offset, f"value {name} is used but never defined")
        if scope.outer_values is not None:
            self._values = scope.outer_values

    def _successors(self, successor_text: str, offset: int) -> list[Block]:
        scope = self._scopes[-1]
        blocks = []
        for piece in successor_text.split(","):
            label = piece.strip()
            if _LABEL.fullmatch(label) is None:
                raise expected(self._text, offset, "a successor such as ^bb1")
            if label not in scope.labels:
                scope.labels[label] = Block(label)
                scope.wanted_labels[label] = offset + piece.index("^")
            blocks.append(scope.labels[label])
            offset += len(piece) + 1
        return blocks

    def _block(self, position: int) -> int:
        """Reads `^bb1(%x: i32, ...):` and makes it the current block."""
        text, scope = self._text, self._scopes[-1]
        match = _LABEL.match(text, position)
        if match is None:
            raise expected(text, position, "a block label such as ^bb1")
        label = match.group()
        block = scope.labels.setdefault(label, Block(label))
        if any(block is other for other in scope.region.blocks):
            raise MlirSyntaxError(text, position, f"block {label} is defined twice")
        scope.wanted_labels.pop(label, None)
        scope.region.blocks.append(block)
        scope.block = block
        position = self._skip(match.end())
        if text.startswith("(", position):
            position = self._arguments(block, self._skip(position + 1))
        if not text.startswith(":", position):
            raise expected(text, position, f"':' after {label}")
        return self._skip(position + 1)

    def _arguments(self, block: Block, position: int) -> int:
        """Reads `%x: i32 loc(...), ...)`."""
        text = self._text
        if text.startswith(")", position):
            return self._skip(position + 1)
        while True:
            match = _ARGUMENT.match(text, position)
            if match is None:
                raise expected(text, position, "a block argument such as %arg0: i32")
            end = type_end(text, match.end())
            value = self._define(match.group(1), match.group(1), text[match.end() : end], position)
            block.arguments.append(value)
            position = self._skip(end)
            if (location := self._location(position)) is not None:
                spelling, offset, position = location
                self._value_locations.append((value, spelling, offset))
            if text.startswith(")", position):
                return self._skip(position + 1)
            if not text.startswith(",", position):
                raise expected(text, position, "',' or ')' after a block argument")
            position = self._skip(position + 1)


def _expand_aliases(root: Op, aliases: Aliases) -> None:
    """Replaces the aliases in all types and attributes."""
    for op in root.walk():
        op.attributes = {key: aliases.expand(value) for key, value in op.attributes.items()}
        values = list(op.results)
        for region in op.regions:
            for block in region.blocks:
                values.extend(block.arguments)
        for value in values:
            value.type = aliases.expand(value.type)
