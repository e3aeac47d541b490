"""Writing results so that a file is whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from npuscope.errors import UserError


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` through a temporary file beside it. Raises UserError when that cannot be done."""
    try:
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
