"""Timelines made by hand, a slice at a time."""

from __future__ import annotations

import numpy as np

from npuscope.npu.machine import cube_cores, mixed_cores, vector_cores
from npuscope.trace.schema import CoreInfo, Launch, Site, Space
from npuscope.trace.timeline import (
    CORE_COLUMNS,
    EDGE_COLUMNS,
    SLICE_COLUMNS,
    TRANSFER_COLUMNS,
    UNIT_COLUMNS,
    UNKNOWN,
    Lane,
    Source,
    Step,
    Timeline,
)

CORES = {"vector": vector_cores, "cube": cube_cores, "mix": mixed_cores}


class Maker:
    """Collects rows; `timeline` puts them together."""

    def __init__(self, kind: str = "vector", blocks: int = 1, source: Source = Source.MODEL) -> None:
        self.cores: tuple[CoreInfo, ...] = CORES[kind](blocks)
        self.blocks, self.source = blocks, source
        self.steps: list[Step] = []
        self.slices: list[dict[str, int]] = []
        self.transfers: list[dict[str, int]] = []
        self.units: list[dict[str, int]] = []
        self.edges: list[dict[str, int]] = []
        self.spans = {core: {"start": 0, "end": 1000} for core in range(len(self.cores))}

    def slice(self, text: str, lane: Lane, start: int, end: int, core: int = 0, dtype: str = "", **columns: int) -> int:
        """A slice of a step of its own; its number."""
        self.steps.append(Step(4 * len(self.steps), text, lane, Site(text), dtype=dtype))
        number = len(self.slices)
        base = {"bank_group": 0, "bank": 0, "work": 0, "bytes": 0}
        place = {"core": core, "lane": lane, "step": number, "row": number, "start": start, "end": end}
        self.slices.append(base | place | columns)
        return number

    def move(
        self,
        text: str,
        lane: Lane,
        start: int,
        end: int,
        source: Space,
        target: Space,
        size: int,
        core: int = 0,
        hits: int = 0,
        misses: int = 0,
        victims: int = 0,
    ) -> int:
        """A slice that moves `size` bytes in one stretch."""
        number = self.slice(text, lane, start, end, core, work=size)
        self.transfers.append({
            "slice": number, "source": source, "target": target, "bytes": size, "start": start, "end": end,
            "hits": hits, "misses": misses, "victims": victims,
        })  # fmt: skip
        return number

    def unit(self, number: int, read: int, written: int, steps: int = 0) -> None:
        """What a slice reads and writes in its unit's memory."""
        self.units.append({"slice": number, "read": read, "written": written, "steps": steps})

    def edge(self, source: int, target: int, number: int, kind: int = 0) -> None:
        """A wait let go by a set."""
        self.edges.append({"source": source, "target": target, "kind": kind, "number": number})

    def core(self, core: int, **columns: int) -> None:
        """Figures of a core; it runs from 0 to 1000 unless they say otherwise."""
        self.spans[core] |= columns

    def timeline(self, cycles: int = 1000, mhz: float = 1650.0, kernel: str = "made") -> Timeline:
        """The timeline."""
        launch = Launch(0, kernel, "Ascend910B4", self.cores, (self.blocks,), {}, {})
        cores = [self.spans[core] for core in range(len(self.cores))]
        return Timeline(
            launch, "Ascend910B4", mhz, self.source, cycles, 0, self.steps, _table(SLICE_COLUMNS, self.slices),
            [""] * len(self.slices), transfers=_table(TRANSFER_COLUMNS, self.transfers),
            edges=_table(EDGE_COLUMNS, self.edges), cores=_table(CORE_COLUMNS, cores),
            units=_table(UNIT_COLUMNS, self.units),
        )  # fmt: skip


def _table(columns: tuple[str, ...], rows: list[dict[str, int]]) -> np.ndarray:
    return (
        np.array([[row.get(name, UNKNOWN) for name in columns] for row in rows], np.int64)
        .reshape(-1, len(columns))
        .T.copy()
    )
