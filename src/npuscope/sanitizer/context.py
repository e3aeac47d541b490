"""What the checks of one run share: the user's settings, and the happens-before engine that several of them ask."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuscope.sanitizer.order.engine import Hazards


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose.

    `dcci` is "exact" (a model of each core's cache lines), "strict" (the vendor's rule: a DCCI right beside the scalar
    access) or "off". `trace_masks` lists vector instructions that run under a non-default mask. `leaks` and `unused`
    ask for device memory that is never freed and never touched. `block` limits the checks of one core's instructions
    to that block. `every_tool` lets each check say all that it sees; without it the memory check leaves unordered
    writes of several cores to the race check where that runs too. `launch_log` asks for results of tile kernels that a
    later launch writes over unread, `nan` for the first NaN of each.
    """

    dcci: str = "exact"
    trace_masks: bool = False
    leaks: bool = False
    unused: bool = False
    block: int | None = None
    every_tool: bool = False
    launch_log: bool = False
    nan: bool = False


class Context:
    """The settings and the names of the chosen checks; `hazards` is made when a check first asks for it."""

    def __init__(self, settings: Settings, names: Collection[str]) -> None:
        self.settings = settings
        self.names = names
        self._hazards: Hazards | None = None

    @property
    def overwrites(self) -> bool:
        """Whether unordered writes of several cores are for the memory check to report."""
        return "memory" in self.names and (self.settings.every_tool or "race" not in self.names)

    @property
    def judges_order(self) -> bool:
        """Whether a check wants to know what orders what."""
        return self.overwrites or not {"race", "init"}.isdisjoint(self.names)

    @property
    def hazards(self) -> Hazards:
        """The engine, shared by the checks that ask for it."""
        if self._hazards is None:
            from npuscope.sanitizer.order.engine import Hazards  # with numba, which takes long to import

            self._hazards = Hazards("race" in self.names or self.overwrites, "init" in self.names)
        return self._hazards

    @property
    def asked(self) -> Hazards | None:
        """The engine if a check has asked for it."""
        return self._hazards
