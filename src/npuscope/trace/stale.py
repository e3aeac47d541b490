"""Compiled code that is older than its source. numba looks at the file of each function alone, and so would go on with
code into which an older form of another file was compiled."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path


def drop_stale(folder: Path) -> None:
    """Remove what numba compiled from `folder`'s files if any of them has changed since. Where the folder cannot be
    written, numba keeps its code elsewhere and nothing is done."""
    compiled = folder / "__pycache__"
    digest = hashlib.sha1(usedforsecurity=False)
    for file in sorted(folder.glob("*.py")):
        digest.update(file.read_bytes())
    stamp = compiled / "compiled_from"
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        for file in compiled.glob("*.nb[ci]"):
            file.unlink(missing_ok=True)
        compiled.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())
