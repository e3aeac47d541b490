"""The lines that the command says, in the vendor's form: on standard output, by level."""

from __future__ import annotations

import os
import sys
from enum import IntEnum

from npuscope.cli.output import discard

VARIABLE = "MSOPT_LOG_LEVEL"
LONGEST = 1000
"""Characters of one message."""


class Level(IntEnum):
    """How much a line matters."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3


class Log:
    """Says lines from a level on."""

    def __init__(self) -> None:
        given = os.environ.get(VARIABLE, "")
        self.level = Level(int(given)) if given in ("0", "1", "2", "3") else Level.INFO
        if given and given not in ("0", "1", "2", "3"):
            self.warn(f"{VARIABLE} should be 0, 1, 2 or 3; {given[:50]} is ignored")

    def debug(self, text: str) -> None:
        """For those who look for a mistake of this program."""
        self._say(Level.DEBUG, text)

    def info(self, text: str) -> None:
        """What happens."""
        self._say(Level.INFO, text)

    def warn(self, text: str) -> None:
        """What may not be as it was wanted."""
        self._say(Level.WARN, text)

    def error(self, text: str) -> None:
        """What cannot be done."""
        self._say(Level.ERROR, text)

    def _say(self, level: Level, text: str) -> None:
        if level < self.level:
            return
        say(f"{f'[{level.name}]':<8}{text if len(text) <= LONGEST else text[: LONGEST - 3] + '...'}")


def say(text: str) -> None:
    """Print a line; where nobody reads any more, the files and the exit code have to do."""
    try:
        print(text, flush=True)
    except OSError:
        discard(sys.stdout.fileno())
