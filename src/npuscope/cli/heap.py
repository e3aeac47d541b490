"""How this process keeps house with its memory."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""mallopt(3): how much free memory is kept, and from which size on a piece comes from the system by itself."""
ALL, LARGEST = (1 << 31) - 1, 1 << 25
"""The most that the two may be."""


def keep_memory() -> None:
    """Let what arrays leave be there for the next ones, rather than be given back to the system and asked for again,
    page by page: this saves a command that goes over a million rows many times a tenth of its time. Does nothing where
    the C library has no such choice."""
    try:
        choose = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    choose(M_MMAP_THRESHOLD, LARGEST)
    choose(M_TRIM_THRESHOLD, ALL)


def leave_as_it_is() -> None:
    """The process is about to end, and what it still holds is not worth looking through: Python would go over every
    object once more, which after a million rows takes half a second."""
    gc.freeze()


@contextmanager
def without_collection() -> Iterator[None]:
    """Look for no reference cycles meanwhile. Importing makes very many objects that all stay, and Python
    would go over them again and again. Not for while a user's script runs."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()
