"""Numbers of a chip's file that one run replaces, named by their path: ``timing.mte2.setup``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from npuscope.errors import UserError

Table = dict[str, Any]


def numbers_of(table: Mapping[str, Any], above: str = "") -> list[str]:
    """The dotted names of all numbers in a table and the tables in it, sorted."""
    return sorted(_numbers(table, above))


def _numbers(table: Mapping[str, Any], above: str) -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{key}.")
        elif isinstance(value, (int, float)):
            yield f"{above}{key}"


def overridden(table: Table, overrides: Mapping[str, float]) -> Table:
    """A copy of `table` with the named numbers replaced.

    Raises UserError for a name that is none of its numbers, listing near ones, for a fraction where the file has a
    whole number, and for a number below 0.
    """
    fresh = _copied(table)
    known = set(numbers_of(table))
    for name, value in overrides.items():
        if name not in known:
            raise UserError(f"no fact named {name!r}{_near(name, known)}")
        *path, last = name.split(".")
        inner = fresh
        for key in path:
            inner = inner[key]
        inner[last] = _fitting(name, value, inner[last])
    return fresh


def _copied(table: Table) -> Table:
    return {key: _copied(value) if isinstance(value, dict) else value for key, value in table.items()}


def _fitting(name: str, value: float, old: float) -> float:
    if isinstance(old, bool):
        return bool(value)
    if value < 0:
        raise UserError(f"{name} is {value}: it cannot be negative")
    if isinstance(old, int) and name.startswith("timing.") is False and value != int(value):
        raise UserError(f"{name} is {value}: it is a whole number")
    return int(value) if isinstance(old, int) and value == int(value) else float(value)


def _near(name: str, known: set[str]) -> str:
    ends = [full for full in known if full.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
    near = sorted(ends)[:5] or get_close_matches(name, sorted(known), n=5, cutoff=0.5)
    return f"; near: {', '.join(near)}" if near else ""
