"""The load of each unit: bars of the pipes, and a table of times, instructions, bytes and operand types
(opprof.md 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Unit(IntEnum):
    """What a figure counts, with the viewer's numbers."""

    MICROSECONDS = 0
    INSTRUCTIONS = 1
    BYTES = 2
    PERCENT = 3

    @property
    def word(self) -> str:
        """For people."""
        return ("us", "", "B", "%")[self]


@dataclass(frozen=True, slots=True)
class Load:
    """One figure of one core: `core` is ``cube0``, ``vector0``, ``vector1`` or ``AiCore``. `value` is None where not
    known; `origin` is what it was made from (cycles, for a share or a time)."""

    block: int
    core: str
    name: str
    unit: Unit
    value: float | None
    origin: float | None


@dataclass(frozen=True, slots=True)
class ComputeLoad:
    """`bars` are shares of each core's cycles by pipe, `table` the figures behind them; blocks ascend in both."""

    bars: tuple[Load, ...]
    table: tuple[Load, ...]
