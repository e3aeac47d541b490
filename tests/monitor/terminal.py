"""A command at a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence


def at_a_terminal(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run `python <words>`; its exit code, and what a person sees, colours and frames included."""
    keyboard, terminal = pty.openpty()
    with subprocess.Popen([sys.executable, *words], env=environment, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(keyboard, 65536):
                shown += piece
        except OSError:  # its last end is closed
            pass
        os.close(keyboard)
        return process.wait(60), shown.decode()
