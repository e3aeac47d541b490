"""Occupancy: whether the cores share the work evenly (opprof.md 3.8)."""

from __future__ import annotations

from dataclasses import dataclass, field

DIMENSIONS = ("cycles", "throughput", "hit_rate", "instructions")
"""What cores are compared by. `throughput` is bytes to and from GM, `hit_rate` that of L2, `instructions` those of
SIMT functions."""


@dataclass(frozen=True, slots=True)
class CoreLoad:
    """What one core did: `hit_rate` is 0..100, `throughput` bytes; None is not known. `levels` has a level of 0..10 for
    each dimension that could be compared: how far the core lies above (10) or below (0) the mean of the cores of its
    type; 0 where all are equal."""

    block: int
    type: str  # "cube", "vector" or "AiCore"
    number: int  # 0, or 1 for the second vector core of a block
    cycles: int
    throughput: int | None
    hit_rate: float | None
    instructions: int | None = None
    per_cycle: float | None = None  # SIMT instructions in each cycle
    levels: dict[str, float] = field(default_factory=dict)

    @property
    def balanced(self) -> bool:
        """Whether every level that tells anything lies in the middle, 4 to 6."""
        return all(4 <= level <= 6 for level in self.levels.values() if level)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Every core of the launch, and a sentence for each way in which some do more than the others."""

    cores: tuple[CoreLoad, ...]
    advice: tuple[str, ...]
