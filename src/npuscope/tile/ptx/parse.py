"""The text of PTX instructions, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(r"(?:@(!?)\s*(%?[\w$]+)\s+)?([a-z][\w.]*(?:::\w+)?[\w.]*)\s*(.*)", re.DOTALL)


class PtxError(Exception):
    """An instruction that cannot be read or is not known; the message is part of a sentence."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """`name` with its suffixes, operands as text (a vector operand is a tuple); `guard` the predicate that must hold
    (or must not, when `unless`)."""

    name: str
    suffixes: tuple[str, ...]
    operands: tuple[str | tuple[str, ...], ...]
    guard: str = ""
    unless: bool = False

    @property
    def text(self) -> str:
        """The instruction's full name."""
        return ".".join((self.name, *self.suffixes))


def parse(text: str) -> list[Instruction]:
    """The instructions in order. Raises PtxError for labels and what else is no instruction."""
    plain = _COMMENT.sub(" ", text)
    return [found for statement in plain.split(";") if (found := _instruction(_without_scopes(statement))) is not None]


def _without_scopes(statement: str) -> str:
    """The statement without the braces that open or close a scope before it."""
    left = statement.strip()
    while left[:1] in ("{", "}"):
        left = left[1:].strip()
    return left.rstrip("}").strip() if left.count("}") > left.count("{") else left


def _instruction(statement: str) -> Instruction | None:
    if not statement or statement.startswith(".reg"):
        return None
    match = _STATEMENT.fullmatch(statement)
    if match is None or re.match(r"[\w$]+\s*:", statement):
        raise PtxError(f"has the PTX statement '{' '.join(statement.split())}', which is not supported")
    negated, guard, full, rest = match.groups()
    name, *suffixes = full.split(".")
    return Instruction(name, tuple(suffixes), _operands(rest), guard or "", bool(negated))


def _operands(text: str) -> tuple[str | tuple[str, ...], ...]:
    found: list[str | tuple[str, ...]] = []
    for word in re.findall(r"\{[^}]*\}|[^,\s][^,]*", text):
        word = word.strip()
        if word.startswith("{"):
            found.append(tuple(part.strip() for part in word[1:-1].split(",")))
        elif word:
            found.append(word)
    return tuple(found)
