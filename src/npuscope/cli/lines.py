"""Text files that a flag names."""

from __future__ import annotations

import sys
from pathlib import Path

from npuscope.errors import UserError


def read_lines(path: str | Path, what: str) -> list[str]:
    """The lines of a file, of the standard input for `-`. Raises UserError, which says `what` cannot be read."""
    try:
        return sys.stdin.read().splitlines() if path == "-" else Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {what} {path}: {getattr(error, 'strerror', None) or error}") from None
