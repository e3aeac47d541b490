"""trace.json of one core of a simulator run (opprof.md 2.6, schemaVersion 1): a process for each lane, a thread for
each row of slices that overlap."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from npuscope.profiler.instruction_timeline.drawn import drawn
from npuscope.profiler.instruction_timeline.lanes import PROCESS, WARP_PROCESS, lane_colour
from npuscope.profiler.instruction_timeline.marks import user_marks
from npuscope.profiler.instruction_timeline.placed import Placed, with_memory_lane
from npuscope.profiler.writers.event_file import EventFile, Sink
from npuscope.profiler.writers.text_rows import Sheet, Texts
from npuscope.profiler.writers.trace_json.frame import SINGLE, head
from npuscope.profiler.writers.trace_json.options import EVERYTHING, Shown
from npuscope.profiler.writers.trace_json.simulator import mark_arguments, thread
from npuscope.profiler.writers.trace_json.slice_rows import BYTES, FORMS, SliceRows, ranges
from npuscope.trace.timeline import UNKNOWN, Lane, Timeline
from npuscope.trace.values import few_distinct


def write_core(file: Sink, timeline: Timeline, core: int, shown: Shown = EVERYTHING) -> int:
    """Write the trace of one core (an index in ``launch.cores``) into `file`; how many events it has."""
    return CoreTraces(timeline, shown).write(file, core)


class CoreTraces:
    """The trace.json files of a launch's cores: what they share is computed once."""

    def __init__(self, timeline: Timeline, shown: Shown = EVERYTHING, found: Placed | None = None) -> None:
        self.timeline = timeline
        found = with_memory_lane(timeline, found or Placed(timeline, drawn(timeline)))
        self.place, row, track = found.tracks
        self.places, self.counts = found.places, found.rows
        texts = [
            b',"pid":%d,"tid":%d' % (process(*found.places[place][1:]), 1 + number)
            for place, number in zip(self.place.tolist(), row.tolist(), strict=True)
        ]
        self.rows = SliceRows(timeline, found.drawn, texts, track)
        core = timeline.slice("core")
        self.order = np.argsort(core, kind="stable")
        if not shown.flags:
            self.order = self.order[~found.drawn.flag[self.order]]
        self.bounds = np.searchsorted(core[self.order], np.arange(len(timeline.launch.cores) + 1))
        self.marks = user_marks(timeline).marks if shown.marks else ()

    def write(self, file: Sink, core: int) -> int:
        """Write one core's file; the number of events."""
        mine = self.order[self.bounds[core] : self.bounds[core + 1]]
        with EventFile(file, head(self.timeline, SINGLE, self.timeline.losses)) as events:
            self._names(events, mine)
            for which in ranges(mine):
                texts = Texts()
                columns = self.rows.columns(texts, which)
                events.sheet(Sheet(texts, FORMS, columns, (columns[BYTES] > 0).astype(np.int64)))
            self._marks(events, core)
        return events.count

    def _names(self, events: EventFile, which: np.ndarray) -> None:
        """What each process and thread is called."""
        drawn_on, _ = few_distinct(self.rows.track[which], self.place.size)
        for place, tracks in groupby(drawn_on.tolist(), lambda track: int(self.place[track])):
            pid, name = process(*self.places[place][1:]), thread(*self.places[place][1:])
            events.event(name="process_name", ph="M", pid=pid, tid=0, args={"name": name})
            for row in range(1, 1 + len(list(tracks))):
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


def process(lane: int, warp: int) -> int:
    """The pid of a lane or a warp."""
    return PROCESS[Lane(lane)] if warp == UNKNOWN else WARP_PROCESS + warp
