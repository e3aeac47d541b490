"""Blocks CODE: the text of each source file that the kernel's instructions come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from npuscope.profiler.profile import Profile
from npuscope.profiler.writers.bin import MEGABYTE, Block, BlockType
from npuscope.trace.timeline import Loss

LARGEST = 10 * MEGABYTE
"""Bytes of a source file that is still shown (opprof.md 1.10)."""

Reader = Callable[[str], bytes | None]
"""The text of a file by its path as the timeline names it; None where there is none."""


def read_source(file: str) -> bytes | None:
    """The text of a file on this machine."""
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def source_code(profile: Profile, read: Reader = read_source) -> tuple[list[Block], list[Loss]]:
    """A block for each file, by name, and the files that could not be had."""
    files = sorted({line.frame.file for line in profile.hot_spots.frames})
    found = {file: read(file) for file in files}
    blocks = [Block(BlockType.CODE, data, file) for file, data in found.items() if data]
    missing = [file for file, data in found.items() if data is None]
    losses = [
        Loss("source", f"the text of {file} is not shown: it is missing, or larger than 10 MB", -1, None, 1, len(files))
        for file in missing
    ]
    return blocks, losses
