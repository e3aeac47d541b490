"""A trace for Perfetto: one process for each core, flows from sets to waits, counters (JSON of trace events).

Perfetto counts in whole nanoseconds, which is longer than a cycle. Times are rounded down to them, so slices of one
cycle may have no length; what is tied to a slice is therefore written in the order of cycles, right where it belongs.
Perfetto turns an arrow around that leads to a slice which began earlier, as waits do, so an arrow ends at a slice of
its own: the last cycle of the wait, called ``released``.
"""

from __future__ import annotations

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.instruction_timeline.drawn import drawn
from npuscope.profiler.instruction_timeline.flags import arrows
from npuscope.profiler.instruction_timeline.lanes import core_sort
from npuscope.profiler.instruction_timeline.marks import user_marks
from npuscope.profiler.instruction_timeline.placed import Placed
from npuscope.profiler.instruction_timeline.throughput import NAMES, throughput
from npuscope.profiler.writers.event_file import EVENT, EventFile, Sink
from npuscope.profiler.writers.text_rows import Hex, Micros, Nanos, Sheet, Text, Texts, Whole, quoted
from npuscope.profiler.writers.trace_json.simulator import thread, thread_sort
from npuscope.profiler.writers.trace_json.slice_rows import (
    operand_columns,
    ranges,
    step_arguments,
)
from npuscope.trace.timeline import Lane, Timeline

COUNTERS, LAUNCH = 1, 2
"""Processes beside the cores: the throughput counters, and the launch as a whole."""
FIRST_CORE = 10
HEAD, TIME, LENGTH, TRACK, ARGUMENTS, DETAIL, NUMBER, TAIL, BYTES = range(9)
COLUMNS = 9
SLICE = (
    Text(HEAD), b'"X","ts":', Nanos(TIME), b',"dur":', Nanos(LENGTH), Text(TRACK), Text(ARGUMENTS), Text(DETAIL),
    Hex(NUMBER), Text(TAIL), b'"',
)  # fmt: skip
ARROW = (b'%s{"name":"flag","cat":"flag","id":' % EVENT, Whole(LENGTH), b',"ts":', Nanos(TIME), Text(TRACK))
RELEASED = (
    b'%s{"name":"released","cat":"flag","ph":"X","ts":' % EVENT, Nanos(TIME), b',"dur":', Nanos(LENGTH), Text(TRACK),
    b"}",
)  # fmt: skip
FORMS = (
    (*SLICE, b"}}"),
    RELEASED,
    (*ARROW, b',"ph":"s","bp":"e"}'),
    (*ARROW, b',"ph":"f","bp":"e"}'),
    (*SLICE, b',"process_bytes":', Whole(BYTES), b"}}"),
)
IS_SLICE, IS_RELEASE, IS_BEGIN, IS_END, IS_MOVE = range(5)
"""The forms, the first four in the order that they must have within a cycle: an arrow leaves a slice that has begun."""


def write_perfetto(file: Sink, timeline: Timeline, found: Placed | None = None) -> int:
    """Write a launch for Perfetto into `file`; how many events it has. `found` is where its slices are drawn, where
    that is known already."""
    return PerfettoTrace(timeline, found or Placed(timeline, drawn(timeline))).write(file)


class PerfettoTrace:
    """One Perfetto trace in the making."""

    def __init__(self, timeline: Timeline, found: Placed) -> None:
        self.timeline = timeline
        marks = user_marks(timeline)
        self.marks, self.losses = marks.marks, (*timeline.losses, *marks.losses)
        self.drawn = found.drawn
        place, row, self.track = found.tracks
        self.tracks = [(*found.places[at], number) for at, number in zip(place.tolist(), row.tolist(), strict=True)]

    def write(self, file: Sink) -> int:
        """Write everything; the number of events."""
        timeline = self.timeline
        words: dict[str, str | int | bool] = {
            "displayTimeUnit": "ns",
            "source": timeline.source.word,
            "partial": any(loss.partial for loss in self.losses),
        }
        with EventFile(file, words) as events:
            self._names(events)
            self._launch(events)
            self._instructions(events)
            self._throughput(events)
        return events.count

    def _names(self, events: EventFile) -> None:
        """Cores are processes, lanes are threads; a lane whose slices overlap has several."""
        word = self.timeline.source.word
        _name(events, "process", LAUNCH, 0, f"launch ({word})", -2)
        _name(events, "process", COUNTERS, 0, f"MTE throughput ({word})", -1)
        names = core_names(self.timeline.launch)
        for core in dict.fromkeys(core for core, *_ in self.tracks):
            _name(events, "process", FIRST_CORE + core, 0, f"{names[core]} ({word})", core_sort(names[core]))
        for number, (core, lane, warp, row) in enumerate(self.tracks):
            name = thread(lane, warp) + (f" ({row + 1})" if row else "")
            _name(events, "thread", FIRST_CORE + core, 1 + number, name, 100 * thread_sort(lane, warp) + row)

    def _launch(self, events: EventFile) -> None:
        """The launch, its marks, and what is missing, as slices."""
        timeline = self.timeline
        launch = timeline.launch
        events.event(
            name=launch.kernel,
            ph="X",
            ts=0.0,
            dur=timeline.microseconds,
            pid=LAUNCH,
            tid=1,
            args={"chip": timeline.chip, "source": timeline.source.word, "cores": len(launch.cores)},
        )
        _name(events, "thread", LAUNCH, 1, "kernel", 1)
        losses = [loss for loss in self.losses if loss.level != "info"]
        for number, loss in enumerate(losses):
            events.event(
                name=loss.text,
                ph="X",
                ts=0.0,
                dur=timeline.microseconds,
                pid=LAUNCH,
                tid=2 + number,
                args={"count": loss.count, "total": loss.total},
            )
            _name(events, "thread", LAUNCH, 2 + number, "missing", 2 + number)
        names = core_names(launch)
        rows = {(mark.core, mark.name) for mark in self.marks}
        places = {key: 2 + len(losses) + number for number, key in enumerate(sorted(rows))}
        for (core, name), tid in places.items():
            _name(events, "thread", LAUNCH, tid, f"{Lane.USERMARK.name} {names[core]} {name}", tid)
        for mark in self.marks:
            events.event(
                name=mark.name,
                ph="X",
                ts=mark.start / timeline.mhz,
                dur=(mark.end - mark.start) / timeline.mhz,
                pid=LAUNCH,
                tid=places[mark.core, mark.name],
            )

    def _instructions(self, events: EventFile) -> None:
        """Slices and arrows in the order of their cycles. An arrow against time cannot be drawn and is left out."""
        start, end = self.drawn.start, self.drawn.end
        found = arrows(self.timeline)
        last = np.maximum(end - 1, start)
        forward = start[found.source] <= last[found.target]
        source, target = found.source[forward], found.target[forward]
        released = np.unique(target)
        parts = (
            (IS_SLICE, np.arange(start.size), start, 0),
            (IS_RELEASE, released, last[released], 0),
            (IS_BEGIN, source, start[source], np.arange(source.size)),
            (IS_END, target, last[target], np.arange(source.size)),
        )
        form, row, cycles, number = (
            np.concatenate([np.broadcast_to(part[column], part[1].shape) for part in parts]) for column in range(4)
        )
        order = np.argsort(cycles * 4 + form, kind="stable")
        for which in ranges(order):
            self._piece(events, row[which], form[which], cycles[which], number[which])

    def _piece(
        self, events: EventFile, row: np.ndarray, form: np.ndarray, cycles: np.ndarray, number: np.ndarray
    ) -> None:
        timeline, texts = self.timeline, Texts()
        columns = np.zeros((COLUMNS, row.size), np.int64)
        step = timeline.slice("step")[row]
        columns[TIME] = nanoseconds(cycles, timeline.mhz)
        columns[TRACK] = texts.numbers(
            b',"pid":%d,"tid":%d' % (FIRST_CORE + core, 1 + at) for at, (core, *_) in enumerate(self.tracks)
        )[self.track[row]]
        slices = form == IS_SLICE
        until = nanoseconds(self.drawn.end[row], timeline.mhz)
        columns[LENGTH] = np.where(form <= IS_RELEASE, until - columns[TIME], number)
        heads = [EVENT + b'{"name":%s,"cat":"instruction","ph":' % quoted(item.text) for item in timeline.steps]
        columns[HEAD] = texts.numbers(heads)[step]
        columns[ARGUMENTS] = texts.numbers(step_arguments(item) for item in timeline.steps)[step]
        columns[DETAIL : TAIL + 1, slices] = operand_columns(timeline, texts, row[slices])
        columns[BYTES] = timeline.slice("bytes")[row]
        events.sheet(Sheet(texts, FORMS, columns, np.where(slices & (columns[BYTES] > 0), IS_MOVE, form)))

    def _throughput(self, events: EventFile) -> None:
        found = throughput(self.timeline)
        bins, texts = found.bins, Texts()
        heads = texts.numbers(
            b'%s{"name":"%s","ph":"C","pid":%d,"ts":' % (EVENT, name.encode(), COUNTERS) for name in NAMES
        )
        columns = np.stack(
            [
                np.tile(heads, bins.size),
                np.repeat(bins * 1000, len(NAMES)),
                np.rint(found.at(bins).T.reshape(-1) * 1e6).astype(np.int64),
            ]
        )
        form = (Text(0), Nanos(1), b',"args":{"MB/s":', Micros(2), b"}}")
        events.sheet(Sheet(texts, (form,), columns))


def nanoseconds(cycles: np.ndarray, mhz: float) -> np.ndarray:
    """Cycles as whole nanoseconds, rounded down so that the order of two moments never changes, (rows,) int64."""
    return np.floor(cycles * (1e3 / mhz) + 1e-6).astype(np.int64)


def _name(events: EventFile, what: str, pid: int, tid: int, name: str, place: int) -> None:
    events.event(name=f"{what}_name", ph="M", pid=pid, tid=tid, args={"name": name})
    events.event(name=f"{what}_sort_index", ph="M", pid=pid, tid=tid, args={"sort_index": place})
