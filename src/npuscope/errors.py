"""The one exception type for mistakes that a person can mend: a line of text and an exit code."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_TIMEOUT = 124
"""A kernel did not end in the time that it was given (as timeout(1) has it)."""


class UserError(Exception):
    """What the user asked for cannot be done; `str(error)` is one clear line, `exit_code` what the command returns."""

    exit_code: int = EXIT_USAGE

    def __init__(self, message: str, *, exit_code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Unsupported(UserError):
    """The kernel needs something that npuscope does not simulate; the message names it and the user's line."""
