"""The folder that holds a side's certificates."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from npuscope.errors import UserError

NO_CERTS = "NO_CERTS"
"""Stands where no folder is named: no TLS."""
LONGEST_PATH = 4096
UNUSUAL = "\n\f\r\b\t\v\x7f\"'\\%><|&$"
"""Characters that a path may hold, and hardly ever means to."""


def require_folder(text: str, flag: str, exit_code: int, tell: Callable[[str], None]) -> Path:
    """The folder of certificates that `flag` names. What is odd about it goes to `tell`; UserError if it is no use."""
    fault = _fault(text)
    if fault:
        tell(f"ERROR: {fault}")
        raise UserError(f"{flag} must be a valid directory!", exit_code=exit_code)
    path = Path(text)
    if set(UNUSUAL) & set(text):
        tell(f"WARNING: The path contains invalid character: {_printable(text)}")
    if path.is_symlink():
        tell(f"WARNING: The path is a soft link: {_printable(text)}")
    if os.geteuid() != 0 and not os.access(path, os.R_OK):
        tell(f"WARNING: The path is not readable: {_printable(text)}")
    return path


def _fault(text: str) -> str:
    if not text:
        return "The path is empty."
    if len(os.fsencode(text)) > LONGEST_PATH:
        return f"The length of path is too long, max allowed: {LONGEST_PATH}"
    if "\0" in text or not os.path.exists(text):
        return f"The path does not exist: {_printable(text)}"
    if not os.path.isdir(text):
        return f"The path is a file: {_printable(text)}"
    return ""


def _printable(text: str) -> str:
    """On one line, whatever is in the name."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
