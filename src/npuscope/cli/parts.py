"""Parts of a grid on the command line: ``0:4``, ``-8:``, ``7``."""

from __future__ import annotations

import re
from typing import Any

import click

from npuscope.frontends.launch import Part

_PART = re.compile(r"(-?\d+)?(:)?(-?\d+)?")


class PartType(click.ParamType):
    """A slice of the numbers of a grid's programs, as Python has it, or one number."""

    name = "part"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Part:
        """The two ends; None where the grid's own end counts."""
        if isinstance(value, tuple):
            return value
        match = _PART.fullmatch(value)
        if match is None or not value or (match[2] is None and match[3] is not None):
            self.fail(f"{value!r} is no part of a grid: write FIRST:LAST (LAST is left out), or one number", param, ctx)
        first, last = (int(word) if word else None for word in (match[1], match[3]))
        if match[2] is None:
            assert first is not None
            return first, first + 1 if first != -1 else None
        return first, last
