"""A timeline of some of a launch's cores (``--core-id``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npuscope.profiler.cores import sub_block_names
from npuscope.trace.timeline import EDGE_COLUMNS, SLICE_COLUMNS, DetailParts, Timeline, detail_parts


@dataclass(frozen=True, slots=True)
class Picked(Sequence[str]):
    """Some of the texts of a sequence, made when asked for."""

    texts: Sequence[str]
    rows: np.ndarray

    def __len__(self) -> int:
        return int(self.rows.size)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self.texts[number] for number in self.rows[row].tolist()]
        return self.texts[int(self.rows[row])]

    def parts(self, which: np.ndarray) -> DetailParts:
        """As `trace.timeline.detail_parts`."""
        return detail_parts(self.texts, self.rows[which])


def some_cores(timeline: Timeline, numbers: Collection[int]) -> Timeline:
    """What ran on the cores of these numbers, the N of ``coreN.veccore0``; an AIC and its AIVs have one number.

    Edges from and to other cores are left out, and so is what is missing on them. The table of L2 lines counts all
    cores and stays as it is.
    """
    kept = [core for core, (block, _) in enumerate(sub_block_names(timeline.launch)) if block in numbers]
    place = np.full(len(timeline.launch.cores), -1, np.int64)
    place[kept] = np.arange(len(kept))
    mine = place[timeline.slice("core")] >= 0
    rows = np.flatnonzero(mine)
    number = np.where(mine, np.cumsum(mine) - 1, -1)
    slices = timeline.slices[:, rows]
    slices[SLICE_COLUMNS.index("core")] = place[slices[SLICE_COLUMNS.index("core")]]
    return replace(
        timeline,
        launch=replace(timeline.launch, cores=tuple(timeline.launch.cores[core] for core in kept)),
        slices=slices,
        details=Picked(timeline.details, rows),
        transfers=_of_slices(timeline.transfers, number),
        units=_of_slices(timeline.units, number),
        marks=_of_slices(timeline.marks, number),
        edges=_edges(timeline.edges, number),
        cores=timeline.cores[:, kept] if timeline.cores.shape[1] else timeline.cores,
        losses=tuple(
            replace(loss, core=int(place[loss.core]) if loss.core >= 0 else -1)
            for loss in timeline.losses
            if loss.core < 0 or place[loss.core] >= 0
        ),
    )


def _of_slices(table: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The rows of a table, whose first column is a slice, that belong to slices which are there."""
    kept = table[:, number[table[0]] >= 0]
    kept[0] = number[kept[0]]
    return kept


def _edges(table: np.ndarray, number: np.ndarray) -> np.ndarray:
    source, target = EDGE_COLUMNS.index("source"), EDGE_COLUMNS.index("target")
    kept = table[:, (number[table[source]] >= 0) & (number[table[target]] >= 0)]
    kept[source], kept[target] = number[kept[source]], number[kept[target]]
    return kept
