"""The grid of a Triton launch: its extents, which of its programs run, and how they are named."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from npuscope.errors import EXIT_TIMEOUT, UserError
from npuscope.frontends.launch import Part
from npuscope.tile.overdue import Overdue

MOST_UNSEEN = 1024
"""Programs at either end of a large grid that run when a tensor has no memory, unless the user says which."""
STRETCHES, STRETCH = 32, 64
MOST_PLACES = 8
"""Places, and stretches of program numbers, that the message on a launch that did not end lists."""


def grid_of(kernel: str, extents: tuple[Any, ...]) -> tuple[int, int, int]:
    """The extents of a grid as plain numbers. Raises UserError for what is none."""
    try:
        width, height, depth = (index(extent) for extent in extents)
    except TypeError:
        raise UserError(f"{kernel}: the grid's extents must be whole numbers, got {extents}") from None
    if min(width, height, depth) < 0:
        raise UserError(f"{kernel}: a grid has no negative extents, got {extents}")
    return width, height, depth


def sample(count: int) -> tuple[Part, ...]:
    """Parts of a large grid: its ends, and stretches that are spread by the golden section, so that they do not fall
    together with the length of a row."""
    starts = [int((turn * 0.6180339887) % 1 * count) for turn in range(1, STRETCHES + 1)]
    return ((0, MOST_UNSEEN), (count - MOST_UNSEEN, count), *((start, start + STRETCH) for start in starts))


def chosen_parts(wanted: Sequence[Part], count: int) -> list[range]:
    """The parts of `count` programs that slices choose, sorted, each program once."""
    parts: list[range] = []
    for low, high in sorted(slice(*part).indices(count)[:2] for part in wanted):
        begin = max(low, parts[-1].stop) if parts else low
        if begin < high:
            parts.append(range(begin, high))
    return parts


def shown_grid(grid: tuple[int, int, int]) -> tuple[int, ...]:
    """The grid without the trailing ones."""
    shown = list(grid)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return tuple(shown)


def shown_parts(parts: Sequence[range]) -> str:
    words = [f"{part.start}:{part.stop}" for part in parts]
    if len(words) > MOST_PLACES:
        words = [*words[: MOST_PLACES // 2], f"{len(words) - MOST_PLACES} more parts", *words[-MOST_PLACES // 2 :]]
    return ", ".join(words) or "none"


def _programs(numbers: Sequence[int]) -> str:
    """``programs 0-3, 7`` of sorted numbers."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:MOST_PLACES]]
    more = ", ..." if len(runs) > MOST_PLACES else ""
    return f"program{'s' if len(numbers) > 1 else ''} {', '.join(words)}{more}"


def too_long(kernel: str, seconds: float | None, overdue: Overdue, count: int) -> UserError:
    """The error for a launch that did not end, with where its programs stand."""
    places: dict[str, list[int]] = {}
    for number, place in overdue.standing:
        places.setdefault(place, []).append(number)
    where = "; ".join(f"{_programs(numbers)} at {place}" for place, numbers in list(places.items())[:MOST_PLACES])
    more = f"; {len(places) - MOST_PLACES} places more" if len(places) > MOST_PLACES else ""
    left = count - len(overdue.standing)
    rest = f"; {left} more ended before or had not begun" if left else ""
    return UserError(
        f"{kernel} did not end within {seconds:g} s (--timeout): {where}{more}{rest}", exit_code=EXIT_TIMEOUT
    )
