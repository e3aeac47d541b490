"""The program that a command line names."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from npuscope.errors import UserError


def found_program(program: Sequence[str]) -> list[str]:
    """The command to execute: a file of the current folder first, then PATH; a Python script that is not executable
    runs in this interpreter. Raises UserError."""
    name, *arguments = program
    local = os.path.abspath(name)
    if os.path.isfile(local):
        if os.access(local, os.X_OK):
            return [local, *arguments]
        if name.endswith(".py"):
            return [sys.executable, name, *arguments]
        raise UserError(f"program {name} is not executable")
    found = shutil.which(name)
    if found is None:
        raise UserError(f"program {name} does not exist")
    return [found, *arguments]
