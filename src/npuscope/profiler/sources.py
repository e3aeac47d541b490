"""The text of the source files that a kernel's lines are in, as they are now."""

from __future__ import annotations

from functools import cache
from pathlib import Path

MOST_BYTES = 10 * 2**20
"""A source file beyond this is not read (opprof.md 1.10)."""


@cache
def source_lines(file: str) -> tuple[str, ...] | None:
    """The lines of a file, without line ends; None where it cannot be read, is no text or is too large."""
    path = Path(file)
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return None


def source_line(file: str, line: int) -> str | None:
    """One line, the first being 1; None where there is none."""
    lines = source_lines(file)
    return lines[line - 1] if lines is not None and 0 < line <= len(lines) else None
