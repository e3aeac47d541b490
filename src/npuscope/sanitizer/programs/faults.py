"""The memory check of tile kernels: what the tile machine refused or found strange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.programs import forms, outside
from npuscope.sanitizer.programs.tally import ProgramTally
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault

FORMS: dict[str, Callable[[Batch, Fault], Finding]] = {
    "tile_outside": outside.outside,
    "tile_overflow": outside.elsewhere,
    "tile_masked": outside.masked,
    "tile_misaligned": forms.misaligned,
    "tile_division": forms.division,
    "tile_read_only": forms.read_only,
    "tile_assert": forms.asserted,
    "tile_hint": forms.hint,
    "tile_nan": forms.not_a_number,
}
"""The finding for each fault of the tile machine."""


class ProgramMemory:
    """Takes the faults of launches of programs."""

    name = "memory"
    limits: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._tally = ProgramTally()
        self._seen = 0

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self._tally.findings

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        if batch.first == 0:
            self._seen = 0
        for fault in batch.faults[self._seen :]:
            make = FORMS.get(fault.code)
            if make is not None:
                finding = make(batch, fault)
                key = (finding.kind, batch.launch.kernel, fault.site, _where(fault.facts), finding.severity)
                self._tally.add(key, finding, fault, batch.launch)
        self._seen = len(batch.faults)


def _where(facts: Any) -> tuple[Any, ...]:
    """What tells two findings of one line apart: the argument, and whether it is left at the start or at the end; an
    overflow leads anywhere."""
    if "overflow" in facts:
        return (facts.get("argument", ""),)
    return facts.get("argument", ""), bool(facts.get("last", 0) < 0), bool(facts.get("gap", False))
