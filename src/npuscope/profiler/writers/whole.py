"""A file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npuscope.profiler.writers.large_file import LargeFile

MODE = 0o640
"""Nobody else may write it, which the viewer insists on (opprof.md 2.7, V11); its group may read it."""


@contextmanager
def whole(path: Path) -> Iterator[LargeFile]:
    """A file to write, which takes its name when the block ends well; until then, and where the block fails, an older
    one stays. Where nothing was written, no file of that name is left. Raises OSError."""
    part = path.with_name(f".{path.name}.part")
    try:
        with LargeFile(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)) as file:
            os.fchmod(file.fileno(), MODE)
            yield file
            size = file.tell()
        if size:
            os.replace(part, path)
        else:
            path.unlink(missing_ok=True)
    finally:
        part.unlink(missing_ok=True)
