"""A check of tile kernels beside the check of the same name for kernels of cores."""

from __future__ import annotations

from typing import Any, Protocol

from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.programs.faults import ProgramMemory
from npuscope.sanitizer.programs.init import ProgramInit
from npuscope.sanitizer.programs.race import ProgramRace
from npuscope.trace.recorder import Batch


class ProgramCheck(Protocol):
    """What a check of launches of programs offers."""

    limits: tuple[str, ...]

    def check(self, batch: Batch) -> None:
        """Look at one batch."""

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""


PROGRAM_CHECKS: dict[str, Any] = {"memory": ProgramMemory, "race": ProgramRace, "init": ProgramInit}
"""By the name of the check; what is not here has nothing to look at in a tile kernel: it has no flags, no mask
registers and no cache maintenance."""
