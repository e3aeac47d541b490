"""A process and those that started it, by number."""

from __future__ import annotations

import os

MOST_ANCESTORS = 5
"""As many as the vendor's plug-in names; its daemon takes ten numbers in all."""
PARENT_FIELD = 1
"""Of /proc/<pid>/stat after the name, which is in brackets and may hold anything."""


def family(pid: int | None = None) -> tuple[int, ...]:
    """The process, its parent, the parent's parent and so on, up to the first process of its world."""
    numbers = [pid or os.getpid()]
    while len(numbers) <= MOST_ANCESTORS and (above := parent(numbers[-1])) > 1:
        numbers.append(above)
    return tuple(numbers)


def parent(pid: int) -> int:
    """The number of the process that started another; 0 when it cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[PARENT_FIELD])
    except (OSError, ValueError, IndexError):
        return 0
