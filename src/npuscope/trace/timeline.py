"""When each instruction of a launch ran: what the profiler reads.

A :class:`Timeline` comes from the timing model (`npuscope.npu.timing`, from a trace) or from the dumps of a vendor
simulator (`npuscope.profiler.ingest`). All times are whole core cycles since the launch began on the device; one column
is one int64 array. What a source does not know is :data:`UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from npuscope.trace.schema import Launch, Origin, Pipe, Site

UNKNOWN = -1
"""Stands in a column for what is not known, and for no warp."""


class Lane(IntEnum):
    """Where a slice is drawn. The pipes keep their numbers; the others exist in vendor logs only, except USERMARK."""

    SCALAR = Pipe.S
    VECTOR = Pipe.V
    CUBE = Pipe.M
    MTE1 = Pipe.MTE1
    MTE2 = Pipe.MTE2
    MTE3 = Pipe.MTE3
    ALL = Pipe.ALL
    FLOWCTRL = 7
    SCALARLDST = 8
    CACHEMISS = 9
    FIXP = Pipe.FIX
    USERMARK = 11
    EVENT = 12
    RVECEX = 13
    RVECLD = 14
    RVECST = 15
    RVECLP = 16
    RVECSU = 17


SLICE_COLUMNS = (
    "core", "lane", "step", "row", "fetch", "control", "issue", "start", "end", "bytes", "work",
    "bank_group", "bank", "warp", "threads",
)
"""One row per executed instruction, in the order of the source:

* ``core`` indexes ``launch.cores``; ``lane`` is a :class:`Lane`; ``step`` indexes ``Timeline.steps``.
* ``row`` is the instruction's row in the trace.
* ``fetch``: the instruction cache gives it to the scalar unit; ``control``: the control unit takes it up; ``issue``:
  it enters the queue of its pipe; ``start``: the pipe pops it; ``end``: it retires. A wait_flag (and any other wait)
  lasts from the moment its pipe reaches it until it is let go, so its length is the pipe's waiting time.
* ``bytes`` are those that it moves to or from GM ("process bytes"), ``work`` as in the trace (elements on V, bytes on
  MTE and FIX, multiply-accumulates on M).
* ``bank_group`` and ``bank`` are cycles of ``end - start`` lost to UB bank conflicts: between reads or between writes
  of one group, and between a read and a write of one bank.
* ``warp`` and ``threads`` are those of SIMT instructions: the warp's number and how many of its threads were active."""

TRANSFER_COLUMNS = (
    "slice", "source", "target", "address", "bytes", "requests", "hits", "misses", "victims", "start", "end",
)
"""One row per stretch of data that an instruction moves between two memories (`trace.schema.Space` numbers; the vector
unit and the cube are no memories and have no row). ``address`` is the one in GM, UNKNOWN where there is none.
``requests`` are those of the unit's own request size; ``hits``, ``misses`` and ``victims`` count L2 cache lines (0 away
from GM). ``start`` to ``end`` is when the data itself moves."""

LINE_COLUMNS = ("step", "line", "hits", "misses")
"""What became of the accesses to L2 lines: one row for each (step, line); ``line`` is the address of its first byte."""

UNIT_COLUMNS = ("slice", "read", "written", "steps")
"""What a computing unit does with its own memory: one row for each instruction on V, M or S that touches it. ``read``
and ``written`` are bytes of UB (vector and scalar unit) or L0C (cube); ``steps`` counts the products of two fractals of
512 bytes (cube only). UNKNOWN where a source knows of the instruction but not the figure."""

EDGE_COLUMNS = ("source", "target", "kind", "number")
"""One row for each wait that was let go by a set, and for each instruction that stood until a message of another core
had come: slice numbers, an :class:`EdgeKind`, and the flag's number, UNKNOWN of a message."""

CORE_COLUMNS = (
    "start", "end", "scalar_busy", "scalar_wait", "single_issue", "dual_issue", "wait_instruction",
    "stall_mte1", "stall_mte2", "stall_mte3", "stall_cube", "stall_vector", "stall_ub",
    "icache_requests", "icache_misses", "dcache_hits", "dcache_misses",
)
"""One row per core: its first and last cycle, then cycles of its scalar unit by what it did (busy, waiting for a flag,
issuing one or two instructions, waiting for the instruction buffer, standing before the full queue of a pipe, waiting
for UB) and cache counts. Columns that a source does not know are UNKNOWN throughout."""


MARK_COLUMNS = ("slice", "number")
"""One row for each instruction that marks a moment and has a number: the description id of a print_time_stamp, the id
of a TRACE_START or TRACE_STOP."""


class EdgeKind(IntEnum):
    """What lets a waiting instruction go."""

    FLAG = 0  # set_flag and wait_flag inside a core
    CROSS = 1  # a flag or a message between cores


class Source(IntEnum):
    """Where the times come from; every printed figure says which."""

    MODEL = 0
    SIMULATOR = 1

    @property
    def word(self) -> str:
        """For people."""
        return ("modelled", "vendor simulator")[self]

    @property
    def sentence(self) -> str:
        """For people, under a table of figures."""
        return ("All figures are modelled.", "All figures come from a vendor simulator.")[self]


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of the kernel's code, however often it ran. ``address`` is its pc: made up by the model (each
    instruction takes four bytes), real in vendor dumps. ``text`` is the instruction as assembly, without operands."""

    address: int
    text: str
    lane: Lane
    site: Site
    origin: Origin = Origin.USER
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a timeline lacks: `count` of `total` records of a `kind` on a core (-1: all) and lane (None: all), with some
    of the addresses concerned. `text` is the sentence for people, to be told at `level`: ``error``, ``warning`` or
    ``info``. `partial` is false where no time is missing, only something that goes with it (source lines)."""

    kind: str
    text: str
    core: int = -1
    lane: Lane | None = None
    count: int = 0
    total: int = 0
    addresses: tuple[int, ...] = ()
    level: str = "warning"
    partial: bool = True


def empty(columns: Sequence[str]) -> np.ndarray:
    """A table of `columns` without rows, (columns, 0) int64."""
    return np.zeros((len(columns), 0), np.int64)


@dataclass(frozen=True, slots=True)
class DistinctTexts(Sequence[str]):
    """Texts of which many are equal: `texts` are those that differ, `which` (rows,) says which one each row has."""

    texts: Sequence[str]
    which: np.ndarray

    def __len__(self) -> int:
        return int(self.which.size)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self.texts[number] for number in self.which[row].tolist()]
        return self.texts[int(self.which[row])]

    def distinct(self, which: np.ndarray) -> tuple[list[str], np.ndarray]:
        """As :func:`distinct_details`."""
        numbers, place = np.unique(self.which[which], return_inverse=True)
        return [self.texts[number] for number in numbers.tolist()], place


@dataclass(frozen=True, slots=True)
class DetailParts:
    """Texts in pieces: that of row i is ``heads[which[i]]``, then ``number[i]`` in hexadecimal digits (nothing where it
    is negative), then ``tails[which[i]]``. So a million copies that differ in their address alone need one text."""

    heads: Sequence[str]
    tails: Sequence[str]
    which: np.ndarray
    number: np.ndarray

    def text(self, row: int) -> str:
        """The text of one row."""
        kind, number = int(self.which[row]), int(self.number[row])
        return f"{self.heads[kind]}{number:x}{self.tails[kind]}" if number >= 0 else self.heads[kind] + self.tails[kind]


def detail_parts(details: Sequence[str], which: np.ndarray) -> DetailParts:
    """The texts of the slices `which`. Details that are kept in pieces have a method ``parts`` of the same form,
    without the first argument."""
    if hasattr(details, "parts"):
        parts: DetailParts = details.parts(which)
        return parts
    texts, place = distinct_details(details, which)
    return DetailParts(texts, [""] * len(texts), place, np.full(which.size, UNKNOWN))


def distinct_details(details: Sequence[str], which: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts that the slices `which` have, each once or nearly so, and (those,) int64 which of them each slice has.
    Details that can tell equal ones apart without making them all have a method ``distinct`` of the same form."""
    if hasattr(details, "parts"):
        parts = details.parts(which)
        pairs = np.stack([parts.which, parts.number])
        _, first, place = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        return [parts.text(row) for row in first.tolist()], place.reshape(-1)
    if hasattr(details, "distinct"):
        texts, place = details.distinct(which)
        return texts, place
    made = [details[row] for row in which.tolist()]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(made))}
    return list(numbers), np.array([numbers[text] for text in made], np.int64)


@dataclass(slots=True)
class Timeline:
    """One launch in time. Tables are (columns, rows) int64 in the order of the constants of this module.

    `mhz` turns cycles into time: us = cycles / mhz. `cycles` is the whole task's length, launch overhead included;
    `overhead` is what passes before the first core starts. `details` holds the operands of each slice as text, for
    people; it may make them when asked. `dtypes` of steps name the elements that an instruction works on.
    """

    launch: Launch
    chip: str
    mhz: float
    source: Source
    cycles: int
    overhead: int
    steps: list[Step]
    slices: np.ndarray
    details: Sequence[str]
    transfers: np.ndarray = field(default_factory=lambda: empty(TRANSFER_COLUMNS))
    lines: np.ndarray = field(default_factory=lambda: empty(LINE_COLUMNS))
    edges: np.ndarray = field(default_factory=lambda: empty(EDGE_COLUMNS))
    cores: np.ndarray = field(default_factory=lambda: empty(CORE_COLUMNS))
    units: np.ndarray = field(default_factory=lambda: empty(UNIT_COLUMNS))
    losses: tuple[Loss, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)  # facts about the run for reports: model version, L2 start
    marks: np.ndarray = field(default_factory=lambda: empty(MARK_COLUMNS))

    @property
    def partial(self) -> bool:
        """Whether times are missing that should be there."""
        return any(loss.partial for loss in self.losses)

    @property
    def microseconds(self) -> float:
        """Length of the task."""
        return self.cycles / self.mhz

    def slice(self, name: str) -> np.ndarray:
        """A slice column by name, (slices,)."""
        return self.slices[SLICE_COLUMNS.index(name)]

    def transfer(self, name: str) -> np.ndarray:
        """A transfer column by name, (transfers,)."""
        return self.transfers[TRANSFER_COLUMNS.index(name)]

    def line(self, name: str) -> np.ndarray:
        """A column of the L2 line table by name."""
        return self.lines[LINE_COLUMNS.index(name)]

    def unit(self, name: str) -> np.ndarray:
        """A column of the table of units by name."""
        return self.units[UNIT_COLUMNS.index(name)]

    def edge(self, name: str) -> np.ndarray:
        """An edge column by name, (edges,)."""
        return self.edges[EDGE_COLUMNS.index(name)]

    def mark(self, name: str) -> np.ndarray:
        """A mark column by name, (marks,)."""
        return self.marks[MARK_COLUMNS.index(name)]

    def core(self, name: str) -> np.ndarray:
        """A core column by name, (cores,)."""
        return self.cores[CORE_COLUMNS.index(name)]
