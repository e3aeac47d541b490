"""A check of tile kernels beside the check of the same name for kernels of cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from npuscope.sanitizer.context import Context
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.programs.faults import ProgramMemory
from npuscope.sanitizer.programs.init import ProgramInit
from npuscope.sanitizer.programs.race import ProgramRace
from npuscope.sanitizer.programs.sync import ProgramSync
from npuscope.trace.recorder import Batch


class ProgramCheck(Protocol):
    """What a check of launches of programs offers."""

    limits: tuple[str, ...]

    def check(self, batch: Batch) -> None:
        """Look at one batch."""

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""


PROGRAM_CHECKS: dict[str, Callable[[Context], ProgramCheck]] = {
    "memory": lambda context: ProgramMemory(),
    "race": lambda context: ProgramRace(context.settings.launch_log),
    "init": lambda context: ProgramInit(),
    "sync": lambda context: ProgramSync(),
}
"""By the name of the check; what is not here has nothing to look at in a tile kernel: it has no mask registers and no
cache maintenance."""
