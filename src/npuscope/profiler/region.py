"""The part of a launch between the marks that a kernel sets itself (KernelScale, opprof.md 1.4).

MetricsProfStart and MetricsProfStop leave a row each in the scalar unit of a core. Time outside the marks is cut out of
the timeline and what is left is moved together: counters of the part are then those of any timeline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npuscope.trace.timeline import CORE_COLUMNS, SLICE_COLUMNS, TRANSFER_COLUMNS, UNKNOWN, Timeline

START, STOP = re.compile(r"PROF\w*_?START"), re.compile(r"PROF\w*_?STOP")
"""In the text of a step."""
BEGINS, ENDS = 1, 2
"""What a mark does."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Marked time of one core: `at` are the ends of its windows in time order, start, stop, start, ...; `passed` how
    much marked time lies before each of them."""

    at: np.ndarray
    passed: np.ndarray

    def warp(self, time: np.ndarray) -> np.ndarray:
        """Marked cycles before each point of time."""
        return np.rint(np.interp(time, self.at, self.passed)).astype(np.int64)

    def inside(self, time: np.ndarray) -> np.ndarray:
        """Whether a point of time is marked; a window's start is, its stop is not."""
        return np.searchsorted(self.at, time, side="right") % 2 == 1

    @property
    def length(self) -> int:
        """Marked cycles in all."""
        return int(self.passed[-1]) if self.passed.size else 0


class Chosen(Sequence[str]):
    """Some items of a sequence, looked up when asked for."""

    def __init__(self, items: Sequence[str], places: np.ndarray) -> None:
        self.items = items
        self.places = places

    def __len__(self) -> int:
        return int(self.places.size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Chosen(self.items, self.places[index])
        return self.items[int(self.places[index])]


def marked_part(timeline: Timeline) -> Timeline | None:
    """What ran between the marks of each core; None where no core has any.

    Times count marked cycles only. An instruction belongs to the part where it starts in marked time; its length is
    what of it is marked. Figures of the cores' table that cannot be cut are UNKNOWN. A core without marks has nothing.
    """
    windows = _windows(timeline)
    if windows is None:
        return None
    core, start, end = timeline.slice("core"), timeline.slice("start"), timeline.slice("end")
    kept = np.zeros(core.size, bool)
    slices = timeline.slices.copy()
    transfers = timeline.transfers.copy()
    of_transfer = core[timeline.transfer("slice")]
    for number, window in enumerate(windows):
        mine = np.flatnonzero(core == number)
        if not window.at.size:
            continue
        kept[mine] = window.inside(start[mine]) & (end[mine] >= 0)
        for name in ("fetch", "control", "issue", "start", "end"):
            _warp(slices, SLICE_COLUMNS.index(name), mine, window)
        moved = np.flatnonzero(of_transfer == number)
        for name in ("start", "end"):
            _warp(transfers, TRANSFER_COLUMNS.index(name), moved, window)
    places = np.flatnonzero(kept)
    new = np.full(core.size, UNKNOWN, np.int64)
    new[places] = np.arange(places.size)
    lengths = np.array([window.length for window in windows], np.int64)
    cores = np.full((len(CORE_COLUMNS), lengths.size), UNKNOWN, np.int64)
    cores[CORE_COLUMNS.index("start")], cores[CORE_COLUMNS.index("end")] = 0, lengths
    edges = timeline.edges[:, (new[timeline.edge("source")] >= 0) & (new[timeline.edge("target")] >= 0)].copy()
    edges[:2] = new[edges[:2]]
    return replace(
        timeline, cycles=int(lengths.max(initial=0)), overhead=0, slices=slices[:, kept],
        details=Chosen(timeline.details, places), transfers=_renumbered(transfers, new),
        units=_renumbered(timeline.units, new), edges=edges, cores=cores,
    )  # fmt: skip


def _windows(timeline: Timeline) -> list[Windows] | None:
    """The marked time of each core; None where there are no marks."""
    kinds = np.array([_mark(step.text) for step in timeline.steps], np.int64)
    kind = kinds[timeline.slice("step")] if kinds.size else np.zeros(0, np.int64)
    marks = np.flatnonzero(kind)
    if not marks.size:
        return None
    core, start, end = timeline.slice("core"), timeline.slice("start"), timeline.slice("end")
    found = []
    for number in range(len(timeline.launch.cores)):
        mine = marks[core[marks] == number]
        mine = mine[np.argsort(start[mine], kind="stable")]
        last = int(end[core == number].max(initial=0))
        found.append(_window(kind[mine].tolist(), start[mine].tolist(), end[mine].tolist(), last))
    return found


def _window(kinds: list[int], starts: list[int], ends: list[int], last: int) -> Windows:
    """Windows from the marks of a core in time order. A start inside a window and a stop outside one are passed over; a
    window that is not stopped ends at `last`."""
    at: list[int] = []
    for kind, start, end in zip(kinds, starts, ends, strict=True):
        if kind == BEGINS and len(at) % 2 == 0:
            at.append(end)
        elif kind == ENDS and len(at) % 2 == 1:
            at.append(start)
    if len(at) % 2:
        at.append(last)
    edges = np.array(at, np.int64)
    passed = np.zeros(edges.size, np.int64)
    passed[1::2] = (edges[1::2] - edges[::2]).cumsum()
    passed[2::2] = passed[1:-1:2]
    return Windows(edges, passed)


def _mark(text: str) -> int:
    text = text.upper()
    return BEGINS if START.search(text) else ENDS if STOP.search(text) else 0


def _warp(table: np.ndarray, row: int, columns: np.ndarray, window: Windows) -> None:
    times = table[row, columns]
    table[row, columns] = np.where(times == UNKNOWN, UNKNOWN, window.warp(times))


def _renumbered(table: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The rows whose first column, a slice's number, is still there."""
    number = new[table[0]]
    kept = table[:, number >= 0].copy()
    kept[0] = number[number >= 0]
    return kept
