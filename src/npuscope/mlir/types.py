"""Balanced scanning of MLIR text, and queries on the raw text of a type.

Types and attributes stay raw text in the op tree; the functions here answer the few questions a lowering asks of them.
In MLIR text `->`, `>=` and `<=` are not brackets, and a string may hold any bracket (frontends.md 1).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from npuscope.errors import UserError

STRING_PATTERN = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_CLOSER = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSERS = frozenset(_CLOSER.values())
_TOKEN = re.compile(STRING_PATTERN + r'|->|[<>]=|[()\[\]{}<>"]')
_BRACKETED = re.compile(r'[()\[\]{}<>"]')
_TYPE_NAME = re.compile(r"!?[A-Za-z_$][\w$.]*", re.ASCII)
_ARROW = re.compile(r"\s*->\s*", re.ASCII)

_INTEGER = re.compile(r"(?:[su]?i(\d{1,8})|index)", re.ASCII)
_FLOAT = re.compile(r"(?:b?f(\d{1,3})(?:E\d+M\d+[A-Z]*)?|tf32)", re.ASCII)
_TYPE_START = re.compile(r"!|\(|(?:memref|tensor|vector|complex|tuple)<", re.ASCII)
_DIMENSIONS = re.compile(r"(?:(?:\d+|\?|\[\d+\])x)*", re.ASCII)
_SPACE_NUMBER = re.compile(r"(\d{1,9})(?:\s*:\s*\w+)?", re.ASCII)
_LAYOUT_HEADS = ("strided<", "affine_map<")


class Mismatch(UserError, ValueError):
    """A type or an attribute is not of the kind that was asked for."""


class MlirSyntaxError(UserError):
    """MLIR text that cannot be read: `line` and `column` count from 1, `offset` from 0; `problem` is what is wrong."""

    def __init__(self, text: str, offset: int, problem: str) -> None:
        self.offset = offset
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - text.rfind("\n", 0, offset)
        self.problem = problem
        super().__init__(f"MLIR text, line {self.line}, column {self.column}: {problem}")

    def within(self, text: str, start: int) -> MlirSyntaxError:
        """The same error for the whole `text`, of which the faulty piece begins at `start`."""
        return MlirSyntaxError(text, start + self.offset, self.problem)


def expected(text: str, offset: int, what: str) -> MlirSyntaxError:
    """The error "expected `what`, found ..." at the first character that is no space from `offset` of `text` on."""
    offset = len(text) - len(text[offset:].lstrip())
    shown = text[offset : offset + 200].split("\n", 1)[0][:32].rstrip()
    return MlirSyntaxError(text, offset, f"expected {what}, found {repr(shown) if shown else 'the end'}")


def balanced_end(text: str, start: int) -> int:
    """The offset just after the bracket that closes the one at `start`. Raises MlirSyntaxError when none does."""
    open_brackets = [_CLOSER[text[start]]]
    for match in _TOKEN.finditer(text, start + 1):
        token = match.group()
        closer = _CLOSER.get(token)
        if closer is not None:
            open_brackets.append(closer)
        elif token in _CLOSERS:
            wanted = open_brackets.pop()
            if token != wanted:
                raise expected(text, match.start(), f"'{wanted}'")
            if not open_brackets:
                return match.end()
        elif token == '"':
            raise MlirSyntaxError(text, match.start(), "this string does not end on its line")
    raise MlirSyntaxError(text, start, f"'{text[start : start + 1]}' is never closed")


@lru_cache(maxsize=16)
def _splitter(separator: str) -> re.Pattern[str]:
    return re.compile(STRING_PATTERN + rf'|::|{re.escape(separator)}|->|[<>]=|[()\[\]{{}}<>"]')


def split_top(text: str, separator: str = ",") -> list[str]:
    """The stripped pieces of `text` between the separators that no bracket or string encloses; [] for blank text.

    `::` of a symbol reference is no separator. Raises MlirSyntaxError when the brackets do not balance.
    """
    if not text.strip():
        return []
    if separator == "," and not _BRACKETED.search(text):
        return [piece.strip() for piece in text.split(separator)]
    pieces: list[str] = []
    begin = skip = 0
    for match in _splitter(separator).finditer(text):
        if match.start() < skip:
            continue
        token = match.group()
        if token == separator:
            pieces.append(text[begin : match.start()].strip())
            begin = match.end()
        elif token in _CLOSER:
            skip = balanced_end(text, match.start())
        elif token in _CLOSERS or token == '"':
            raise MlirSyntaxError(text, match.start(), f"unexpected {token!r}")
    pieces.append(text[begin:].strip())
    return pieces


def type_end(text: str, start: int) -> int:
    """The offset just after the type that begins at `start`. Raises MlirSyntaxError when no type does."""
    if text.startswith("(", start):
        return function_type_end(text, start)
    match = _TYPE_NAME.match(text, start)
    if match is None:
        raise expected(text, start, "a type")
    end = match.end()
    return balanced_end(text, end) if text.startswith("<", end) else end


def function_type_end(text: str, start: int) -> int:
    """The offset just after the function type `(inputs) -> results` that begins at `start`."""
    if not text.startswith("(", start):
        raise expected(text, start, "'(' of a function type")
    end = balanced_end(text, start)
    arrow = _ARROW.match(text, end)
    if arrow is None:
        raise expected(text, end, "'->' of a function type")
    end = arrow.end()
    return balanced_end(text, end) if text.startswith("(", end) else type_end(text, end)


def function_type(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`(memref<4xf32>, i32) -> (i1)` as its input types and its result types. Raises MlirSyntaxError."""
    text = text.strip()
    end = function_type_end(text, 0)
    if end != len(text):
        raise expected(text, end, "the end of the function type")
    close = balanced_end(text, 0)
    arrow = _ARROW.match(text, close)
    result_start = arrow.end() if arrow else close
    inputs = _type_list(text, 1, close - 1)
    if text.startswith("(", result_start):
        return inputs, _type_list(text, result_start + 1, end - 1)
    return inputs, (text[result_start:],)


def _type_list(text: str, start: int, end: int) -> tuple[str, ...]:
    """The comma-separated types of text[start:end], each of them checked to be one type and nothing else."""
    try:
        pieces = tuple(split_top(text[start:end]))
    except MlirSyntaxError as error:
        raise error.within(text, start) from None
    for piece in pieces:
        at = text.find(piece, start)
        try:
            whole = type_end(piece, 0) == len(piece)
        except MlirSyntaxError as error:
            raise error.within(text, at) from None
        if not whole:
            raise MlirSyntaxError(text, at, f"{piece[:48]!r} is not a type")
    return pieces


class _Container(NamedTuple):
    dimensions: tuple[int | None, ...] | None  # None: unranked
    element: str
    parameters: tuple[str, ...]  # what follows the element type


@lru_cache(maxsize=4096)
def _container(text: str) -> _Container | None:
    """Reads `name<4x?xf32, parameters...>`; None for text of another form."""
    match = _TYPE_NAME.match(text)
    if match is None or not text.startswith("<", match.end()) or balanced_end(text, match.end()) != len(text):
        return None
    pieces = split_top(text[match.end() + 1 : -1])
    if not pieces:
        return None
    first = pieces[0]
    if first.startswith("*x"):
        return _Container(None, first[2:], tuple(pieces[1:]))
    prefix = _DIMENSIONS.match(first)
    end = prefix.end() if prefix else 0
    # a scalable extent such as [4] is a multiple of 4 that is not known here
    dimensions = tuple(int(size) if size.isdigit() else None for size in first[:end].split("x")[:-1])
    return _Container(dimensions, first[end:], tuple(pieces[1:]))


def is_integer(text: str) -> bool:
    """Whether the type is `index` or an integer of any signedness (`i32`, `ui8`, `si4`)."""
    return _INTEGER.fullmatch(text) is not None


def is_float(text: str) -> bool:
    """Whether the type is a scalar floating-point type (`f32`, `bf16`, `tf32`, `f8E4M3FN`)."""
    return _FLOAT.fullmatch(text) is not None


def bit_width(text: str) -> int:
    """Bits of a scalar type; `index` has 64, `tf32` 19 (as in MLIR). Raises Mismatch for a type without a width."""
    if text == "index":
        return 64
    if text == "tf32":
        return 19
    match = _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)
    if match is None:
        raise Mismatch(f"type {text!r} has no bit width: it is neither an integer nor a float")
    return int(match.group(1))


def element_type(text: str) -> str:
    """The element type of a shaped or pointer type, a scalar type itself. Raises Mismatch where there is none."""
    text = text.strip()
    if is_integer(text) or is_float(text):
        return text
    container = _container(text)
    if container is None or not _is_type(container.element):
        raise Mismatch(f"type {text!r} has no element type")
    return container.element


def _is_type(text: str) -> bool:
    return is_integer(text) or is_float(text) or _TYPE_START.match(text) is not None


def shape(text: str) -> tuple[int | None, ...] | None:
    """Extents, None for a dynamic one; None for an unranked type; () for a scalar and for a type without dimensions."""
    text = text.strip()
    if is_integer(text) or is_float(text):
        return ()
    container = _container(text)
    if container is None:
        raise Mismatch(f"type {text!r} has no shape")
    return container.dimensions


def memory_space_text(text: str) -> str | None:
    """The raw memory space of a memref or pointer: `22`, `gm`, `#hivm.address_space<ub>`; None without one."""
    container = _container(text.strip())
    if container is None:
        return None
    named = (p for p in container.parameters if not p.startswith(_LAYOUT_HEADS))
    return next(named, None)


def memory_space(text: str) -> int | None:
    """The memory space of a memref or pointer where it is a number (`memref<?xf32, 22>` -> 22), else None."""
    space = memory_space_text(text)
    match = _SPACE_NUMBER.fullmatch(space) if space is not None else None
    return int(match.group(1)) if match else None
