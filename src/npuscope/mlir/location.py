"""Source locations: reading `loc(...)`, finding the user's frames, and giving every op a line of the user's.

The rule (frontends.md 1): the innermost position whose file belongs to no DSL package counts; an op without one takes
the position of the op before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from npuscope.mlir.attributes import unescape
from npuscope.mlir.types import STRING_PATTERN, MlirSyntaxError, balanced_end, expected

if TYPE_CHECKING:
    from npuscope.mlir.tree import Op

NameMeaning = Literal["variable", "function"]
_DEEPEST = 200  # levels of nested locations; an inlined call adds one

_SPACE = re.compile(r"\s*", re.ASCII)
_FILE = re.compile(
    rf"({STRING_PATTERN})\s*:\s*(\d{{1,10}})\s*:\s*(\d{{1,10}})(?:\s+to\s+\d{{0,10}}\s*:\s*\d{{1,10}})?", re.ASCII
)
_NAME = re.compile(STRING_PATTERN)
_ALIAS = re.compile(r"#[A-Za-z_$][\w$]*", re.ASCII)
_UNKNOWN = re.compile(r"unknown\b")
_WRAPPED = re.compile(r"loc\s*\(", re.ASCII)
_CALLSITE = re.compile(r"callsite\s*\(", re.ASCII)
_AT = re.compile(r"at\b")
_FUSED = re.compile(r"fused\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Frame:
    """A position in a source file; `line` counts from 1, `column` is as the front end wrote it."""

    file: str
    line: int
    column: int
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """Where an op comes from.

    `frames`: innermost first, a callee before its callers; () when unknown. `names`: what name wrappers say, outermost
    first, a callee's before its callers'. `alternatives`: the other positions of a fused location, in their order.
    """

    frames: tuple[Frame, ...]
    names: tuple[str, ...]
    alternatives: tuple[Location, ...] = ()


UNKNOWN = Location((), ())


def user_frames(location: Location, is_library: Callable[[str], bool]) -> tuple[Frame, ...]:
    """The frames whose file `is_library` does not claim, innermost first; () when there is none.

    Of a fused location the first alternative with such a frame counts.
    """
    for candidate in (location, *location.alternatives):
        frames = tuple(frame for frame in candidate.frames if not is_library(frame.file))
        if frames:
            return frames
    return ()


def inherit_locations(op: Op, is_library: Callable[[str], bool]) -> None:
    """Gives each op inside `op` that has no user frame the position of a neighbour, in place; its own names stay.

    The neighbour is the previous located op of the block; for the first ops of a block the enclosing op; and when that
    has no position either, the next located op of the block. Where none is found the location is left as it is.
    """
    known: dict[str, bool] = {}

    def claimed(file: str) -> bool:
        if file not in known:
            known[file] = is_library(file)
        return known[file]

    waiting = [op]
    while waiting:
        parent = waiting.pop()
        outer = parent.location if user_frames(parent.location, claimed) else None
        for region in parent.regions:
            for block in region.blocks:
                _inherit_in_block(block.operations, outer, claimed)
                waiting.extend(inner for inner in block.operations if inner.regions)


def _inherit_in_block(operations: list[Op], outer: Location | None, is_library: Callable[[str], bool]) -> None:
    source = outer
    leading: list[Op] = []
    for op in operations:
        if user_frames(op.location, is_library):
            source = op.location
            for earlier in leading:
                earlier.location = _moved(earlier.location, source)
            leading.clear()
        elif source is None:
            leading.append(op)
        else:
            op.location = _moved(op.location, source)


def _moved(location: Location, source: Location) -> Location:
    """The position of `source` with the names of `location`."""
    if location.names == source.names:
        return source
    return Location(source.frames, location.names, source.alternatives)


class LocationReader:
    """Reads the locations of one module's text; each alias and each spelling is read once.

    `aliases` maps `#loc5` to the offset of what its `loc(` encloses. With `names="function"` a name around a file
    position is the function of that frame; with "variable" it goes to the location's names.
    """

    def __init__(self, text: str, aliases: dict[str, int], names: NameMeaning = "variable") -> None:
        self._text = text
        self._aliases = aliases
        self._names_are_functions = names == "function"
        self._locations: dict[str, Location] = {}
        self._chains: dict[str, list[Location]] = {}

    def read(self, spelling: str, offset: int) -> Location:
        """The location that `spelling`, the text inside `loc(...)` at `offset`, stands for. Raises MlirSyntaxError."""
        location = self._locations.get(spelling)
        if location is None:
            chains, end = self._location(offset, 0)
            self._finish(end)
            location = self._locations[spelling] = _preferred(chains)
        return location

    def _finish(self, position: int) -> None:
        end = self._skip(position)
        if not self._text.startswith(")", end):
            raise expected(self._text, end, "')' after a location")

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def _location(self, position: int, depth: int) -> tuple[list[Location], int]:
        """The alternatives of the location at `position` (none when unknown) and the offset after it."""
        text = self._text
        if depth > _DEEPEST:
            raise MlirSyntaxError(text, position, f"locations are nested deeper than {_DEEPEST} levels")
        position = self._skip(position)
        if (match := _ALIAS.match(text, position)) is not None:
            return self._alias(match.group(), position, depth), match.end()
        if (match := _FILE.match(text, position)) is not None:
            frame = Frame(unescape(match.group(1)), int(match.group(2)), int(match.group(3)))
            return [Location((frame,), ())], match.end()
        if (match := _NAME.match(text, position)) is not None:
            return self._named(unescape(match.group()), match.end(), depth)
        if (match := _UNKNOWN.match(text, position)) is not None:
            return [], match.end()
        if (match := _CALLSITE.match(text, position)) is not None:
            return self._callsite(match.end(), depth)
        if (match := _FUSED.match(text, position)) is not None:
            return self._fused(match.end(), depth)
        if (match := _WRAPPED.match(text, position)) is not None:
            chains, end = self._location(match.end(), depth + 1)
            self._finish(end)
            return chains, self._skip(end) + 1
        raise expected(text, position, "a location")

    def _alias(self, name: str, position: int, depth: int) -> list[Location]:
        chains = self._chains.get(name)
        if chains is None:
            target = self._aliases.get(name)
            if target is None:
                raise MlirSyntaxError(self._text, position, f"location {name} is not defined")
            chains, end = self._location(target, depth + 1)
            self._finish(end)
            self._chains[name] = chains
        return chains

    def _named(self, name: str, position: int, depth: int) -> tuple[list[Location], int]:
        position = self._skip(position)
        if not self._text.startswith("(", position):
            return [Location((), (name,))], position
        chains, end = self._location(position + 1, depth + 1)
        self._finish(end)
        return [self._wrap(name, chain) for chain in chains or [UNKNOWN]], self._skip(end) + 1

    def _wrap(self, name: str, chain: Location) -> Location:
        if self._names_are_functions and len(chain.frames) == 1 and chain.frames[0].function is None:
            frame = chain.frames[0]
            return Location((Frame(frame.file, frame.line, frame.column, name),), chain.names)
        return Location(chain.frames, (name, *chain.names))

    def _callsite(self, position: int, depth: int) -> tuple[list[Location], int]:
        callees, end = self._location(position, depth + 1)
        end = self._skip(end)
        at = _AT.match(self._text, end)
        if at is None:
            raise expected(self._text, end, "'at' of a call site")
        callers, end = self._location(at.end(), depth + 1)
        self._finish(end)
        return _called(callees, callers), self._skip(end) + 1

    def _fused(self, position: int, depth: int) -> tuple[list[Location], int]:
        text = self._text
        if text.startswith("<", position):
            position = self._skip(balanced_end(text, position))
        if not text.startswith("[", position):
            raise expected(text, position, "'[' of a fused location")
        chains: dict[Location, None] = {}  # an ordered set
        position = self._skip(position + 1)
        while not text.startswith("]", position):
            inner, end = self._location(position, depth + 1)
            chains.update(dict.fromkeys(inner))
            position = self._skip(end)
            if text.startswith(",", position):
                position += 1
            elif not text.startswith("]", position):
                raise expected(text, position, "',' or ']' in a fused location")
        return list(chains), position + 1


def _called(callees: list[Location], callers: list[Location]) -> list[Location]:
    """Each callee called from the first caller, then the first callee called from each other caller."""
    if not callees or not callers:
        return callees or callers
    pairs = [(callee, callers[0]) for callee in callees] + [(callees[0], caller) for caller in callers[1:]]
    return [Location(callee.frames + caller.frames, callee.names + caller.names) for callee, caller in pairs]


def _preferred(chains: list[Location]) -> Location:
    """One location of all alternatives, those with a frame first."""
    if not chains:
        return UNKNOWN
    first, *others = sorted(chains, key=lambda chain: not chain.frames)
    return Location(first.frames, first.names, tuple(others))
