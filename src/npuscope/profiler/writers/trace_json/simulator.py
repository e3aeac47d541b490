"""trace.json of a simulator run: all cores in one file (opprof.md 2.6, schemaVersion 2)."""

from __future__ import annotations

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.instruction_timeline.drawn import drawn
from npuscope.profiler.instruction_timeline.flags import Arrows, arrows, flag_numbers
from npuscope.profiler.instruction_timeline.lanes import SORT, WARP_SORT, core_sort, lane_colour
from npuscope.profiler.instruction_timeline.marks import Mark, user_marks
from npuscope.profiler.instruction_timeline.placed import Placed
from npuscope.profiler.instruction_timeline.spans import spans
from npuscope.profiler.instruction_timeline.throughput import NAMES, throughput
from npuscope.profiler.writers.event_file import EVENT, EventFile, Sink
from npuscope.profiler.writers.text_rows import Micros, Sheet, Text, Texts, Whole
from npuscope.profiler.writers.trace_json.banner import NOTICE, banner
from npuscope.profiler.writers.trace_json.frame import SIMULATOR, head
from npuscope.profiler.writers.trace_json.options import EVERYTHING, Shown
from npuscope.profiler.writers.trace_json.slice_rows import (
    ARGUMENTS,
    COLUMNS,
    FORMS,
    GROUP,
    HEAD,
    OPERANDS,
    THREADS,
    TIME,
    TRACK,
    SliceRows,
    picoseconds,
    ranges,
    stack_text,
)
from npuscope.trace.timeline import UNKNOWN, Lane, Loss, Timeline
from npuscope.trace.values import few_distinct

THROUGHPUT = "MTE Throughput"
AFTER_ZERO = 1e-3
"""Where a counter at the very beginning is put: the viewer drops those at 0 (V8)."""

END, ID, COUNT = COLUMNS, COLUMNS + 1, COLUMNS + 2
TIED = (b',"id":', Text(ID), Whole(COUNT))
FLAG_BODY = (
    Text(HEAD), b'"B","ts":', Micros(TIME), Text(TRACK), *TIED, b'"', Text(ARGUMENTS), *OPERANDS, Text(THREADS),
    b'"}',
)  # fmt: skip
FLAG_END = (Text(HEAD), b'"E","ts":', Micros(END), Text(TRACK), *TIED, b'"')
IN_GROUP = (b',"group_id":"', Whole(GROUP), b'"')
FLAG_FORMS = (
    (*FLAG_BODY, b"}", *FLAG_END, b"}"),
    (*FLAG_BODY, *IN_GROUP, b"}", *FLAG_END, *IN_GROUP, b"}"),
)


def write_simulator(file: Sink, timeline: Timeline, shown: Shown = EVERYTHING, found: Placed | None = None) -> int:
    """Write the trace of all cores into `file`; how many events it has. `found` is where its slices are drawn, where
    that is known already."""
    return SimulatorTrace(timeline, shown, found or Placed(timeline, drawn(timeline))).write(file)


class SimulatorTrace:
    """One trace.json in the making."""

    def __init__(self, timeline: Timeline, shown: Shown, found: Placed) -> None:
        self.timeline = timeline
        self.shown = shown
        self.names = core_names(timeline.launch)
        self.drawn = found.drawn
        self.places = found.places
        tracks = [self._track(*place) for place in found.places]
        self.rows = SliceRows(timeline, found.drawn, tracks, found.which)
        self.grouped = np.zeros(timeline.slices.shape[1], bool)

    def write(self, file: Sink) -> int:
        """Write everything; the number of events."""
        marks = user_marks(self.timeline) if self.shown.marks else None
        losses = (*self.timeline.losses, *(marks.losses if marks else ()))
        with EventFile(file, head(self.timeline, SIMULATOR, losses)) as events:
            self._order(events, bool(marks and marks.marks), losses)
            for number, loss in enumerate(losses):
                banner(events, self.timeline, number, loss)
            if self.shown.spans:
                self._spans(events)
            self._slices(events)
            if self.shown.flags:
                found = arrows(self.timeline)
                self._flags(events, found)
                self._arrows(events, found)
            for mark in marks.marks if marks else ():
                self._mark(events, mark)
            if self.shown.throughput:
                self._throughput(events)
        return events.count

    def _track(self, core: int, lane: int, warp: int) -> bytes:
        return b',"pid":"%s","tid":"%s"' % (self.names[core].encode(), thread(lane, warp).encode())

    def _order(self, events: EventFile, marked: bool, losses: tuple[Loss, ...]) -> None:
        """Which core and lane stands where."""
        cores = dict.fromkeys(core for core, _, _ in self.places)
        for core in cores:
            name = self.names[core]
            events.event(name="process_sort_index", ph="M", pid=name, tid="NA", args={"sort_index": core_sort(name)})
        for core, lane, warp in self.places:
            _thread_order(events, self.names[core], thread(lane, warp), thread_sort(lane, warp))
        for core in cores if marked else ():
            _thread_order(events, self.names[core], Lane.USERMARK.name, SORT[Lane.USERMARK])
        if losses:
            events.event(name="process_sort_index", ph="M", pid=NOTICE, tid="NA", args={"sort_index": 0})

    def _spans(self, events: EventFile) -> None:
        found = spans(self.timeline, self.drawn)
        if not self.shown.flags:
            found = type(found)(
                *(
                    column[~self.drawn.flag[found.slice]]
                    for column in (found.slice, found.fetch, found.control, found.start)
                )
            )
        self.grouped[found.slice] = True
        mhz = self.timeline.mhz
        both = found.control != UNKNOWN
        pieces = (
            (b'"cache_time"', found.slice, found.fetch, np.where(both, found.control, found.start)),
            (b'"ccu_time"', found.slice[both], found.control[both], found.start[both]),
        )
        steps = self.timeline.steps
        for name, rows, first, last in pieces:
            texts = Texts()
            heads = texts.numbers(
                EVENT + b'{"name":%s,"cname":"%s","ph":"X","ts":' % (name, lane_colour(step.lane).encode())
                for step in steps
            )
            addresses = texts.numbers(b',"args":{"pc_addr":"0x%x"},"group_id":"' % step.address for step in steps)
            step = self.timeline.slice("step")[rows]
            start, end = picoseconds(first, mhz), picoseconds(last, mhz)
            tracks = self.rows.tracks(texts, rows)
            columns = np.stack([heads[step], start, end - start, tracks, addresses[step], rows])
            form = (Text(0), Micros(1), b',"dur":', Micros(2), Text(3), Text(4), Whole(5), b'"}')
            events.sheet(Sheet(texts, (form,), columns))

    def _slices(self, events: EventFile) -> None:
        moved = self.timeline.slice("bytes") > 0
        for which in ranges(np.flatnonzero(~self.drawn.flag)):
            texts = Texts()
            form = moved[which] + 2 * self.grouped[which].astype(np.int64)
            events.sheet(Sheet(texts, FORMS, self.rows.columns(texts, which), form))

    def _flags(self, events: EventFile, found: Arrows) -> None:
        """Sets and waits are a beginning and an end each, tied by an id: that is how the viewer knows them."""
        numbers = flag_numbers(self.timeline, self.drawn, found)
        core = self.timeline.slice("core")
        for which in ranges(np.flatnonzero(self.drawn.flag)):
            texts = Texts()
            ids = texts.numbers(b'"%s_' % name.encode() for name in self.names)
            columns = np.vstack(
                [self.rows.columns(texts, which), self.rows.end[which], ids[core[which]], numbers[which]]
            )
            events.sheet(Sheet(texts, FLAG_FORMS, columns, self.grouped[which].astype(np.int64)), each=2)

    def _arrows(self, events: EventFile, found: Arrows) -> None:
        """From the end of a set to the end of the wait that it lets go."""
        texts = Texts()
        lane, core = self.timeline.slice("lane"), self.timeline.slice("core")
        pair = lane[found.source] * 32 + lane[found.target]
        distinct, index = few_distinct(pair, 1 << 10)
        kinds = texts.numbers(
            EVENT + f'{{"name":"flow","cat":"{Lane(way >> 5).name}To{Lane(way & 31).name}","ph":'.encode()
            for way in distinct.tolist()
        )
        ids = texts.numbers([*(b'"%s_' % name.encode() for name in self.names), b'"intra_'])
        columns = np.stack([
            kinds[index],
            ids[np.where(found.cross, len(self.names), core[found.target])],
            found.number,
            self.rows.end[found.source], self.rows.tracks(texts, found.source),
            self.rows.end[found.target], self.rows.tracks(texts, found.target),
        ])  # fmt: skip
        form = (
            Text(0), b'"s","id":', Text(1), Whole(2), b'","ts":', Micros(3), Text(4), b"}",
            Text(0), b'"t","id":', Text(1), Whole(2), b'","ts":', Micros(5), Text(6), b"}",
        )  # fmt: skip
        events.sheet(Sheet(texts, (form,), columns), each=2)

    def _mark(self, events: EventFile, mark: Mark) -> None:
        events.event(
            name=mark.name, cname=lane_colour(Lane.USERMARK), ph="X", ts=mark.start / self.timeline.mhz,
            dur=(mark.end - mark.start) / self.timeline.mhz, pid=self.names[mark.core], tid=Lane.USERMARK.name,
            args=mark_arguments(self.timeline, mark),
        )  # fmt: skip

    def _throughput(self, events: EventFile) -> None:
        found = throughput(self.timeline)
        bins = found.bins
        values = found.at(bins)
        texts = Texts()
        heads = texts.numbers(
            b'%s{"name":"%s","ph":"C","pid":"%s","tid":"0","ts":' % (EVENT, name.encode(), THROUGHPUT.encode())
            for name in NAMES
        )
        times = np.where(bins == 0, AFTER_ZERO, bins) * 1e6
        columns = np.stack(
            [
                np.tile(heads, bins.size),
                np.repeat(np.rint(times).astype(np.int64), len(NAMES)),
                np.rint(values.T.reshape(-1) * 1e6).astype(np.int64),
            ]
        )
        form = (Text(0), Micros(1), b',"args":{"throughput(MB/s)":', Micros(2), b"}}")
        events.sheet(Sheet(texts, (form,), columns))


def thread(lane: int, warp: int) -> str:
    """The tid of a lane or a warp."""
    return Lane(lane).name if warp == UNKNOWN else f"WARP_{warp}"


def thread_sort(lane: int, warp: int) -> int:
    """Where a lane or a warp stands below its core."""
    return SORT[Lane(lane)] if warp == UNKNOWN else WARP_SORT + warp


def mark_arguments(timeline: Timeline, mark: Mark) -> dict[str, str]:
    """The call stacks of the two instructions of a mark."""
    first, last = (timeline.steps[int(timeline.slice("step")[row])] for row in (mark.first, mark.last))
    return {"trace_start": stack_text(first.site), "trace_stop": stack_text(last.site)}


def _thread_order(events: EventFile, process: str, name: str, place: int) -> None:
    events.event(name="thread_sort_index", ph="M", pid=process, tid=name, args={"sort_index": place})
