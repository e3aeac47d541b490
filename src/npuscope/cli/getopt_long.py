"""Command lines as C's getopt_long reads them: prefixes of long options, ``--opt v`` and ``--opt=v``, an end at the
first word that is no option."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """A long option by its full name, and what stood with it (None for one that takes no value)."""

    name: str
    value: str | None


class Unrecognised(Exception):
    """What getopt_long gives up at: an unknown or ambiguous option, a missing or unwanted value."""


def parse(
    words: Sequence[str], shorts: dict[str, str], longs: Sequence[dict[str, bool]]
) -> tuple[list[Word], list[str]]:
    """The options and the words after them.

    `longs` are groups of names with whether they take a value; a prefix is looked up group by group, so that a later
    group never makes a prefix ambiguous that an earlier one has. `shorts` are letters with the long names they mean.
    """
    takes = {name: value for group in longs for name, value in group.items()}
    found: list[Word] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, separator, value = word[2:].partition("=")
            full = _full_name(name, longs)
            given: str | None = value if separator else None
        else:
            full, given = _short(word, shorts, takes, rest)
        if takes[full] and given is None:
            if not rest:
                raise Unrecognised(word)
            given = rest.pop(0)
        if not takes[full] and given is not None:
            raise Unrecognised(word)
        found.append(Word(full, given))
    return found, rest


def _short(word: str, shorts: dict[str, str], takes: dict[str, bool], rest: list[str]) -> tuple[str, str | None]:
    """The first letter of a group; the others go back, or are its value."""
    full = shorts.get(word[1])
    if full is None:
        raise Unrecognised(word)
    tail = word[2:]
    if takes[full]:
        return full, tail or None
    if tail:
        rest.insert(0, f"-{tail}")
    return full, None


def _full_name(name: str, longs: Sequence[dict[str, bool]]) -> str:
    if any(name in group for group in longs):
        return name
    for group in longs:
        candidates = [full for full in group if full.startswith(name)] if name else []
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            break
    raise Unrecognised(f"--{name}")
