"""The check of cache maintenance: data that one core writes and another reads through or past a data cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from npuscope.sanitizer.dcci_exact import ExactCache
from npuscope.sanitizer.dcci_strict import StrictRule
from npuscope.sanitizer.findings import Collector, Finding
from npuscope.trace.recorder import Batch


class Launch(Protocol):
    """A way of looking at one launch."""

    def check(self, batch: Batch) -> None:
        """Look at one batch."""


MODES: dict[str, Callable[[Collector], Launch]] = {"exact": ExactCache, "strict": StrictRule}


class DcciCheck:
    """Takes batches in order (`check(batch)`) and keeps `findings`. `mode` is "exact" (a model of each core's lines),
    "strict" (the vendor's rule: a DCCI right beside the scalar access) or "off"."""

    name = "dcci"

    def __init__(self, mode: str = "exact") -> None:
        self.collector = Collector()
        self._mode = mode
        self._launch: Launch | None = None

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self.collector.findings

    @property
    def limits(self) -> tuple[str, ...]:
        """Everything, when the check is off."""
        return ("cache maintenance: the DCCI check is off",) if self._mode == "off" else ()

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        if self._mode == "off":
            return
        if batch.first == 0 or self._launch is None:
            self._launch = MODES[self._mode](self.collector)
        self._launch.check(batch)
