"""What the happens-before engine found, as values that findings are made of; the frame of the checks that report it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npuscope.sanitizer.access import AccessView, describe, footprint_of
from npuscope.sanitizer.findings import Collector, Finding
from npuscope.sanitizer.order import state
from npuscope.sanitizer.order.side import side_of
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Role

if TYPE_CHECKING:
    from npuscope.sanitizer.context import Context
    from npuscope.sanitizer.order.engine import Hazards


@dataclass(frozen=True, slots=True)
class Found:
    """One row of the engine's findings. `earlier` is None for a use of bytes that were never written where they lay."""

    kind: int
    compiler: bool  # the device compiler would order the pair
    low: int
    high: int
    times: int
    later: AccessView
    earlier: AccessView | None


def found_rows(engine: Hazards, batch: Batch) -> Iterator[Found]:
    """Everything found in the launch so far that is a finding."""
    table = engine.found
    for row in table:
        kind = int(row[state.KIND])
        if kind == state.BROUGHT_UNDEFINED:
            continue
        earlier: AccessView | None
        if kind == state.USED_UNDEFINED:
            origin = int(row[state.ORIGIN_ROW])
            earlier = _view(batch, table[origin, state.LATER :]) if origin >= 0 else None
        else:
            earlier = _view(batch, row[state.EARLIER : state.LATER])
        yield Found(
            kind, bool(row[state.COMPILER]), int(row[state.LOW]), int(row[state.HIGH]), int(row[state.TIMES]),
            _view(batch, row[state.LATER :]), earlier,
        )


def _view(batch: Batch, numbers: np.ndarray) -> AccessView:
    side = side_of(numbers[: state.LATER - state.EARLIER])
    return describe(
        batch, side.site, side.core, side.opcode, side.pipe, batch.buffers[side.buffer], Role(side.role), side.address,
        footprint_of(batch, side.footprint), side.row,
    )


class HazardCheck(ABC):
    """A check whose findings are rows of the engine: `finding_of` turns one into a finding, or None if it is another's.

    Rows count up while a launch goes on, so that they become findings when it ends, or when somebody asks before.
    """

    name = ""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ended = Collector()
        self._batch: Batch | None = None

    def check(self, batch: Batch) -> None:
        """Take note of a batch; the engine has gone through it."""
        if batch.instruction.shape[1] == 0 and batch.first == 0:
            return
        self._batch = batch
        if batch.last:
            self._collect(self._ended, batch)
            self._batch = None

    @property
    def findings(self) -> list[Finding]:
        """What was found so far, the launch that is going on included."""
        if self._batch is None:
            return self._ended.findings
        so_far = self._ended.copy()
        self._collect(so_far, self._batch)
        return so_far.findings

    @property
    def limits(self) -> tuple[str, ...]:
        """What the engine could not keep or follow."""
        limits = []
        engine = self._context.asked
        if engine is None:  # no launch had cores to order
            return ()
        if engine.crowded:
            limits.append(f"{engine.crowded} accesses were too many to keep")
        if engine.unordered:
            names = ", ".join(dict.fromkeys(engine.unordered))
            limits.append(f"{names} synchronises more cores than are followed")
        return tuple(limits)

    @abstractmethod
    def finding_of(self, found: Found) -> tuple[tuple[Any, ...], Finding] | None:
        """(what makes it the same as another one, the finding)."""

    def _collect(self, collector: Collector, batch: Batch) -> None:
        for found in found_rows(self._context.hazards, batch):
            answer = self.finding_of(found)
            if answer is not None:
                collector.add(*answer)
