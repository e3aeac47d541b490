"""trace.json of an on-board run (opprof.md 2.6, schemaVersion 1): instructions, pipes, warps, communication."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.instruction_timeline.communication import Communication, Range
from npuscope.profiler.instruction_timeline.instructions import InstrTimeline
from npuscope.profiler.instruction_timeline.lanes import colour, lane_colour
from npuscope.profiler.instruction_timeline.states import PipeTimeline
from npuscope.profiler.instruction_timeline.warps import Warp
from npuscope.profiler.writers.event_file import EVENT, EventFile, Sink
from npuscope.profiler.writers.text_rows import Micros, Sheet, Text, Texts, quoted
from npuscope.profiler.writers.trace_json.banner import banner
from npuscope.profiler.writers.trace_json.frame import SINGLE, head
from npuscope.profiler.writers.trace_json.slice_rows import picoseconds, stack_text
from npuscope.trace.timeline import UNKNOWN, Lane, Loss, Timeline


@dataclass(frozen=True, slots=True)
class OnBoard:
    """What an on-board trace shows; None and () are left out."""

    instructions: InstrTimeline | None = None
    pipes: PipeTimeline | None = None
    warps: tuple[Warp, ...] = ()
    communication: Communication | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write: such a run has no trace.json."""
        return not (self.instructions or self.pipes or self.warps or (self.communication and self.communication.ranges))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Everything that is missing."""
        parts = (self.instructions, self.pipes, self.communication)
        return tuple(loss for part in parts if part is not None for loss in part.losses)


def write_on_board(file: Sink, timeline: Timeline, shown: OnBoard) -> int:
    """Write the trace of an on-board run into `file`; how many events it has."""
    losses = (*timeline.losses, *shown.losses)
    names = core_names(timeline.launch)
    with EventFile(file, head(timeline, SINGLE, losses)) as events:
        for number, loss in enumerate(losses):
            banner(events, timeline, number, loss)
        if shown.communication:
            _ranges(events, timeline, shown.communication.ranges)
        if shown.pipes:
            _pipes(events, timeline, shown.pipes, names)
        if shown.instructions:
            _instructions(events, timeline, shown.instructions, names)
        _warps(events, timeline, shown, names)
    return events.count


def _instructions(events: EventFile, timeline: Timeline, shown: InstrTimeline, names: list[str]) -> None:
    found, steps, texts = shown.timed, shown.steps, Texts()
    kinds = {text: number for number, text in enumerate(dict.fromkeys(step.text for step in timeline.steps))}
    heads = texts.numbers(
        EVENT + b'{"name":%s,"cname":"%s","ph":"X","ts":' % (quoted(step.text), colour(kinds[step.text]).encode())
        for step in timeline.steps
    )
    arguments = texts.numbers(
        b',"args":{"pc_addr":"0x%x","code":%s' % (step.address, quoted(stack_text(step.site)))
        for step in timeline.steps
    )
    lost = texts.numbers((b"}}", b',"lost":1}}'))
    start, end = (picoseconds(column, timeline.mhz) for column in (found.start, found.end))
    columns = np.stack(
        [
            heads[steps],
            start,
            end - start,
            _tracks(texts, names, found.core, found.lane),
            arguments[steps],
            lost[found.lost.astype(np.int64)],
        ]
    )
    form = (Text(0), Micros(1), b',"dur":', Micros(2), Text(3), Text(4), Text(5))
    events.sheet(Sheet(texts, (form,), columns))


def _pipes(events: EventFile, timeline: Timeline, shown: PipeTimeline, names: list[str]) -> None:
    found, texts = shown.busy, Texts()
    heads = texts.numbers(
        EVENT + b'{"name":"%s","cname":"%s","ph":"X","ts":' % (lane.name.encode(), lane_colour(lane).encode())
        for lane in Lane
    )
    places = np.zeros(32, np.int64)
    places[[int(lane) for lane in Lane]] = heads
    start, end = (picoseconds(column, timeline.mhz) for column in (found.start, found.end))
    columns = np.stack([places[found.lane], start, end - start, _tracks(texts, names, found.core, found.lane)])
    events.sheet(Sheet(texts, ((Text(0), Micros(1), b',"dur":', Micros(2), Text(3), b"}"),), columns))


def _tracks(texts: Texts, names: list[str], core: np.ndarray, lane: np.ndarray) -> np.ndarray:
    distinct, index = np.unique(core * 32 + lane, return_inverse=True)
    words = (f',"pid":"{names[number >> 5]}","tid":"{Lane(number & 31).name}"'.encode() for number in distinct.tolist())
    return texts.numbers(words)[index]


def _ranges(events: EventFile, timeline: Timeline, ranges: tuple[Range, ...]) -> None:
    ids = {number: place for place, number in enumerate(sorted({item.number for item in ranges}))}
    for item in ranges:
        arguments: dict[str, str] = {"name": item.name}
        if item.slice != UNKNOWN:
            step = timeline.steps[int(timeline.slice("step")[item.slice])]
            arguments |= {"pc_addr": f"0x{step.address:x}", "code": stack_text(step.site)}
        events.event(
            name=item.name,
            cname=colour(ids[item.number]),
            ph="X",
            ts=item.start / timeline.mhz,
            dur=(item.end - item.start) / timeline.mhz,
            pid=item.process,
            tid=item.thread,
            args=arguments,
        )


def _warps(events: EventFile, timeline: Timeline, shown: OnBoard, names: list[str]) -> None:
    """Warps count time on their own core's clock, so each core's first warp is put where the trace begins."""
    first: dict[int, int] = {}
    for warp in shown.warps:
        first[warp.core] = min(first.get(warp.core, warp.start), warp.start)
    begins = _begin(shown)
    for warp in shown.warps:
        name = names[warp.core]
        block = timeline.launch.cores[warp.core]
        core, _, kind = name.partition(".")
        process, thread = f"warp.{name}", f"Warp {warp.number}"
        events.event(name="thread_sort_index", ph="M", pid=process, tid=thread, args={"sort_index": warp.number})
        events.event(
            name=f"Warp_{warp.number}", cname=colour(warp.number), ph="X",
            ts=(warp.start - first[warp.core] + begins) / timeline.mhz, dur=(warp.end - warp.start) / timeline.mhz,
            pid=process, tid=thread,
            args={"block_id": block.block, "core_id": int(core.removeprefix("core")), "core_type": kind,
                  "warp_id": warp.number},
        )  # fmt: skip


def _begin(shown: OnBoard) -> int:
    """The earliest cycle of everything but the warps; 0 where there is nothing else."""
    starts = [item.start for item in shown.communication.ranges] if shown.communication else []
    for part in (shown.pipes.busy if shown.pipes else None, shown.instructions.timed if shown.instructions else None):
        if part is not None and len(part):
            starts.append(int(part.start.min()))
    return min(starts, default=0)
