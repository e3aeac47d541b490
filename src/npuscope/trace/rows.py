"""A launch as one piece: what the batches of a trace bring, put together for tools that need it whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from npuscope.trace.footprint import Explicit
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import ACCESS_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Fault, Launch, Site


@dataclass(frozen=True, slots=True)
class LaunchRows:
    """All rows of one launch: `instruction` (columns, rows) and `access` (columns, rows), int64, with the tables that
    they index. `whole` is false where the trace ends before the launch does."""

    launch: Launch
    instruction: np.ndarray
    access: np.ndarray
    buffers: list[Buffer]
    explicit: list[Explicit]
    sites: list[Site]
    faults: list[Fault]
    whole: bool

    def column(self, name: str) -> np.ndarray:
        """An instruction column by name, (rows,)."""
        return self.instruction[INSTRUCTION_COLUMNS.index(name)]

    def access_column(self, name: str) -> np.ndarray:
        """An access column by name, (accesses,)."""
        return self.access[ACCESS_COLUMNS.index(name)]


def launches(batches: Iterable[Batch]) -> Iterator[LaunchRows]:
    """Each launch of a trace in turn; one launch at a time is held. The host's events belong to no launch and are
    left out."""
    held: list[Batch] = []
    for batch in batches:
        if batch.closing:
            continue
        if held and held[-1].launch.index != batch.launch.index:
            rows, held = _joined(held, whole=False), []
            yield rows
        held.append(batch)
        if batch.last:
            rows, held = _joined(held, whole=True), []  # not held while somebody works on the rows
            del batch
            yield rows
    if held:
        yield _joined(held, whole=False)


def _joined(batches: list[Batch], whole: bool) -> LaunchRows:
    last = batches[-1]
    return LaunchRows(
        last.launch,
        np.concatenate([batch.instruction for batch in batches], axis=1),
        np.concatenate([batch.access for batch in batches], axis=1),
        last.buffers,
        last.explicit,
        last.sites,
        last.faults,
        whole,
    )
