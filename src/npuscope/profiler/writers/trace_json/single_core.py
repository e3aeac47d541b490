"""trace.json of one core of a simulator run (opprof.md 2.6, schemaVersion 1): a process for each lane, a thread for
each row of slices that overlap."""

from __future__ import annotations

from typing import IO

import numpy as np

from npuscope.profiler.instruction_timeline.drawn import Drawn, drawn
from npuscope.profiler.instruction_timeline.lanes import PROCESS, WARP_PROCESS, lane_colour
from npuscope.profiler.instruction_timeline.marks import user_marks
from npuscope.profiler.instruction_timeline.stacking import stacked
from npuscope.profiler.writers.event_file import EventFile
from npuscope.profiler.writers.text_rows import Sheet, Texts
from npuscope.profiler.writers.trace_json.frame import SINGLE, head
from npuscope.profiler.writers.trace_json.options import EVERYTHING, Shown
from npuscope.profiler.writers.trace_json.simulator import mark_arguments, thread
from npuscope.profiler.writers.trace_json.slice_rows import BYTES, FORMS, TRACK, SliceRows, ranges, split
from npuscope.trace.timeline import UNKNOWN, Lane, Source, Timeline, distinct_details


def write_core(file: IO[bytes], timeline: Timeline, core: int, shown: Shown = EVERYTHING) -> int:
    """Write the trace of one core (an index in ``launch.cores``) into `file`; how many events it has."""
    return CoreTraces(timeline, shown).write(file, core)


class CoreTraces:
    """The trace.json files of a launch's cores: what they share is computed once."""

    def __init__(self, timeline: Timeline, shown: Shown = EVERYTHING, found: Drawn | None = None) -> None:
        self.timeline = timeline
        found = found or drawn(timeline)
        self.rows = SliceRows(timeline, found, lambda core, lane, warp: b"")
        self.place = memory_lanes(timeline, self.rows.place)
        self.thread = 1 + stacked(self.place, found.start, found.end)
        core = timeline.slice("core")
        self.order = np.argsort(core, kind="stable")
        if not shown.flags:
            self.order = self.order[~found.flag[self.order]]
        self.bounds = np.searchsorted(core[self.order], np.arange(len(timeline.launch.cores) + 1))
        self.marks = user_marks(timeline).marks if shown.marks else ()

    def write(self, file: IO[bytes], core: int) -> int:
        """Write one core's file; the number of events."""
        mine = self.order[self.bounds[core] : self.bounds[core + 1]]
        with EventFile(file, head(self.timeline, SINGLE, self.timeline.losses)) as events:
            self._names(events, mine)
            for which in ranges(mine):
                texts = Texts()
                columns = self.rows.columns(texts, which)
                key = (self.place[which] << 20) + self.thread[which]
                distinct, index = np.unique(key, return_inverse=True)
                columns[TRACK] = texts.numbers(
                    b',"pid":%d,"tid":%d' % (process(number >> 20), number & (1 << 20) - 1)
                    for number in distinct.tolist()
                )[index]
                events.sheet(Sheet(texts, FORMS, columns, (columns[BYTES] > 0).astype(np.int64)))
            self._marks(events, core)
        return events.count

    def _names(self, events: EventFile, which: np.ndarray) -> None:
        """What each process and thread is called."""
        for place in np.unique(self.place[which]).tolist():
            _, lane, warp = split(place)
            pid, name = process(place), thread(lane, warp)
            events.event(name="process_name", ph="M", pid=pid, tid=0, args={"name": name})
            for row in range(1, 1 + int(self.thread[which][self.place[which] == place].max())):
                events.event(name="thread_name", ph="M", pid=pid, tid=row, args={"name": f"{name}_{row}"})

    def _marks(self, events: EventFile, core: int) -> None:
        marks = [mark for mark in self.marks if mark.core == core]
        names = list(dict.fromkeys(mark.name for mark in marks))
        pid = PROCESS[Lane.USERMARK]
        if marks:
            events.event(name="process_name", ph="M", pid=pid, tid=0, args={"name": Lane.USERMARK.name})
        for row, name in enumerate(names, 1):
            events.event(name="thread_name", ph="M", pid=pid, tid=row, args={"name": name})
        for mark in marks:
            events.event(
                name=mark.name, cname=lane_colour(Lane.USERMARK), ph="X", ts=mark.start / self.timeline.mhz,
                dur=(mark.end - mark.start) / self.timeline.mhz, pid=pid, tid=1 + names.index(mark.name),
                args=mark_arguments(self.timeline, mark),
            )  # fmt: skip


def process(place: int) -> int:
    """The pid of a place."""
    _, lane, warp = split(place)
    return PROCESS[Lane(lane)] if warp == UNKNOWN else WARP_PROCESS + warp


def memory_lanes(timeline: Timeline, place: np.ndarray) -> np.ndarray:
    """Places in which scalar instructions with a memory operand (``XD:`` in a vendor's log) have their own lane."""
    if timeline.source is not Source.SIMULATOR:
        return place
    scalar = np.flatnonzero((timeline.slice("lane") == Lane.SCALAR) & (timeline.slice("warp") == UNKNOWN))
    texts, which = distinct_details(timeline.details, scalar)
    moved = np.array(["XD:" in text for text in texts], bool)[which]
    place = place.copy()
    place[scalar[moved]] += (Lane.SCALARLDST - Lane.SCALAR) << 24
    return place
