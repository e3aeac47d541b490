"""The lines that the vendor's API writes for people."""

from __future__ import annotations

import contextlib
import sys


def say(line: str) -> None:
    """A line to standard output, which a program may have closed."""
    with contextlib.suppress(Exception):
        sys.stdout.write(f"{line}\n")
