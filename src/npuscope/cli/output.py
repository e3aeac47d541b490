"""Writing results so that a file is whole or not there."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from npuscope.errors import UserError


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` through a temporary file beside it; a device or pipe is written as it stands.

    Raises UserError when that cannot be done.
    """
    try:
        if is_special(path):
            with open(path, "wb", buffering=0) as device:
                device.write(data)
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def is_special(path: Path) -> bool:
    """Whether the path is there and must not be replaced: a device, a pipe, a terminal."""
    return path.exists() and not path.is_file() and not path.is_dir()


def require_folder(path: Path) -> None:
    """Raise UserError when a file cannot be made at `path`, before the work is done that is to be written there."""
    folder = path.parent
    if not folder.is_dir():
        raise UserError(f"cannot write {path}: no such folder as {folder}")
    if not is_special(path) and not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"cannot write {path}: permission denied")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")


def complain(line: str) -> None:
    """Print a line to standard error. Where that fails there is nobody to tell: the exit code has to do."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(2)


def discard(descriptor: int) -> None:
    """Send a standard stream that cannot be written nowhere, so that the rest of it does not change the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
