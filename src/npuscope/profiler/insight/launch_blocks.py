"""The blocks of one launch's `visualize_data.bin`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from npuscope.profiler.formulas import table_columns
from npuscope.profiler.insight.base_info import base_info
from npuscope.profiler.insight.cacheline import cacheline
from npuscope.profiler.insight.file_api import file_api
from npuscope.profiler.insight.instruction_api import Stalls, instruction_api
from npuscope.profiler.insight.load import load
from npuscope.profiler.insight.memory_map import memory_map
from npuscope.profiler.insight.memory_tables import memory_tables
from npuscope.profiler.insight.occupancy_map import occupancy_map
from npuscope.profiler.insight.plain import Json, text
from npuscope.profiler.insight.roof_line import roof_line
from npuscope.profiler.insight.source_code import Reader, read_source, source_code
from npuscope.profiler.insight.stall_reasons import stall_reasons
from npuscope.profiler.profile import Profile
from npuscope.profiler.writers.bin import Block, BlockType
from npuscope.trace.timeline import Loss

B = BlockType


class Mode(Enum):
    """Which of the two tools the blocks are for: on the board all cores are shown as one, in the simulator apart."""

    OP = "op"
    SIMULATOR = "simulator"


class Asked(Protocol):
    """What was asked for, as `profiler.selection.Selection` tells it."""

    @property
    def simulator(self) -> bool: ...
    @property
    def counters(self) -> bool: ...
    @property
    def roofline(self) -> bool: ...
    @property
    def occupancy(self) -> bool: ...
    @property
    def source(self) -> bool: ...
    @property
    def stalls(self) -> bool: ...


def wanted_types(asked: Asked) -> frozenset[BlockType]:
    """The blocks that a selection of groups stands for (opprof.md 1.4, 2.7)."""
    hot = {B.CODE, B.FILE_API, B.INSTR_API}
    if asked.simulator:
        return frozenset({B.TRACE, *hot})
    found = {B.TRACE, B.OP_BASIC_INFO}
    if asked.counters:
        found |= {B.COMPUTE_LOAD_FIGURE, B.COMPUTE_LOAD_TABLE, B.STORAGE_ACCESS_HEAT_MAP, B.STORAGE_ACCESS_TABLE}
    if asked.roofline:
        found.add(B.ROOF_LINE)
    if asked.occupancy:
        found.add(B.OCCUPANCY_MAP)
    if asked.source:
        found |= hot | {B.CACHELINE_HEAT_MAP}
    if asked.stalls:
        found.add(B.TOP_STALL_REASON)
    return frozenset(found)


@dataclass(slots=True)
class Blocks:
    """The blocks of a launch: iterate over them once, then `losses` tells what they lack.

    `wanted` are the kinds to build. `tables` are the groups of counters that were asked for (None: all): figures of
    others are ``NA`` in the memory charts, and `detail` adds what filled L0. `trace` is the text of a trace.json,
    `stalls` the samples of warps, `advice` the sentences to show; `device` and `pid` are those of the run; `read` finds
    the source.
    """

    profile: Profile
    wanted: Collection[BlockType]
    mode: Mode = Mode.OP
    tables: Collection[str] | None = None
    detail: bool = False
    trace: bytes | Iterable[bytes | memoryview] | None = None
    stalls: Stalls | None = None
    advice: list[str] = field(default_factory=list)
    device: int = 0
    pid: int = 0
    read: Reader = read_source
    losses: list[Loss] = field(default_factory=list)

    def __iter__(self) -> Iterator[Block]:
        if B.CODE in self.wanted:
            found, losses = source_code(self.profile, self.read)
            self.losses.extend(losses)
            yield from found
        for kind, make in self._makers().items():
            payload = make() if kind in self.wanted else None
            if payload is not None:
                yield Block(kind, payload)

    def _makers(self) -> dict[BlockType, Callable[[], bytes | Iterable[bytes | memoryview] | None]]:
        """What makes each block, in the order of the file."""
        profile = self.profile
        return {
            B.TRACE: lambda: self.trace,
            B.FILE_API: lambda: _text(file_api(profile, merged=self._merged)),
            B.INSTR_API: self._instructions,
            B.OP_BASIC_INFO: lambda: _text(base_info(profile, self.advice, self.device, self.pid)),
            B.COMPUTE_LOAD_FIGURE: self._bars,
            B.COMPUTE_LOAD_TABLE: lambda: _text(load(profile.compute_load.table, self.advice)),
            B.STORAGE_ACCESS_HEAT_MAP: self._memory_map,
            B.STORAGE_ACCESS_TABLE: self._memory_tables,
            B.OCCUPANCY_MAP: lambda: _text(occupancy_map(profile)),
            B.ROOF_LINE: lambda: _text(roof_line(profile.roofline)),
            B.CACHELINE_HEAT_MAP: self._cache_lines,
            B.TOP_STALL_REASON: lambda: _text(stall_reasons(self.stalls or {})),
        }

    @property
    def _tables(self) -> Collection[str]:
        return table_columns(self.profile.counters.columns) if self.tables is None else self.tables

    @property
    def _merged(self) -> bool:
        return self.mode is Mode.OP

    def _bars(self) -> bytes | None:
        return _text(load(self.profile.compute_load.bars if "PipeUtilization" in self._tables else (), self.advice))

    def _memory_map(self) -> bytes | None:
        return _text(memory_map(self.profile.heat_map, self._tables, detail=self.detail, advice=self.advice))

    def _memory_tables(self) -> bytes | None:
        return _text(memory_tables(self.profile, self._tables, detail=self.detail, advice=self.advice))

    def _instructions(self) -> bytes:
        payload, losses = instruction_api(self.profile, merged=self._merged, stalls=self.stalls)
        self.losses.extend(losses)
        return payload

    def _cache_lines(self) -> bytes | None:
        chart = self.profile.cache_map
        if chart is None:
            return None
        payload, losses = cacheline(chart, self.profile.timeline.steps)
        self.losses.extend(losses)
        return payload


def _text(document: Json | None) -> bytes | None:
    return None if document is None else text(document)
