"""InstrTimeline: the instructions of a launch as an on-board run would show them (opprof.md 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.instruction_timeline.pipes import EVERY_PIPE, PipeChoice, timed
from npuscope.profiler.instruction_timeline.records import (
    END_BIT,
    FINAL,
    INSTRUCTION_BITS,
    NIBBLE_OF,
    STATE,
    Event,
    Records,
    decode,
    encode,
)
from npuscope.profiler.instruction_timeline.regions import LIMIT, Regions, number_regions
from npuscope.profiler.instruction_timeline.states import Changes, pipe_timeline
from npuscope.trace.timeline import Lane, Loss, Timeline


@dataclass(frozen=True, slots=True)
class Timed:
    """Instructions, (instructions,) each: `core`, `lane`, region `number`, `start` and `end` in cycles, and `lost`,
    true where the end was not recorded (it is then drawn up to the next start on its pipe). `losses` tells of each core
    and pipe with points that were not recorded."""

    core: np.ndarray
    lane: np.ndarray
    number: np.ndarray
    start: np.ndarray
    end: np.ndarray
    lost: np.ndarray
    losses: tuple[Loss, ...] = ()

    def __len__(self) -> int:
        return int(self.core.size)


@dataclass(frozen=True, slots=True)
class InstrTimeline:
    """What an on-board run shows: the instructions that were timed, the `regions` that they belong to."""

    timed: Timed
    regions: Regions

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Everything that is missing."""
        return (*self.regions.losses, *self.timed.losses)

    @property
    def steps(self) -> np.ndarray:
        """The step of each instruction, (instructions,) int64."""
        table = np.full((32, LIMIT << 1), -1, np.int64)
        for (lane, number), step in self.regions.step.items():
            table[lane, number] = step
        return table[self.timed.lane, self.timed.number]


def instr_timeline(
    timeline: Timeline,
    choice: PipeChoice = EVERY_PIPE,
    limit: int = LIMIT,
) -> InstrTimeline:
    """Number the instructions, record each core as the hardware would, and read the records."""
    regions = number_regions(timeline, choice, min(limit, LIMIT))
    streams = record(timeline, regions, choice)
    names = core_names(timeline.launch)
    return InstrTimeline(pair({core: decode(raw) for core, raw in streams.items()}, names), regions)


def record(timeline: Timeline, regions: Regions, choice: PipeChoice = EVERY_PIPE) -> dict[int, bytes]:
    """The stream of records of each core that has instructions: points of the numbered ones, and the pipes' states."""
    rows = timed(timeline, choice)
    rows = rows[regions.numbers[timeline.slice("step")[rows]] >= 0]
    core, lane = timeline.slice("core")[rows], timeline.slice("lane")[rows]
    number = regions.numbers[timeline.slice("step")[rows]]
    start, end = timeline.slice("start")[rows], timeline.slice("end")[rows]
    start = _in_turn((core * 32 + lane) * LIMIT + number, start, end)
    states = pipe_timeline(timeline, None).states["execute"]
    streams = {}
    for one in np.unique(core).tolist():
        mine = core == one
        streams[one] = _stream(lane[mine], number[mine], start[mine], end[mine], states, one)
    return streams


def _in_turn(region: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Starts that do not lie within the run of the same region before: a region begins anew only when it has ended."""
    order = np.lexsort((end, start, region))
    before = np.concatenate(([-1], end[order][:-1]))
    same = np.concatenate(([False], region[order][1:] == region[order][:-1])) if order.size else before
    turned = start.copy()
    turned[order] = np.where(same, np.minimum(np.maximum(start[order], before), end[order]), start[order])
    return turned


def _stream(
    lane: np.ndarray, number: np.ndarray, start: np.ndarray, end: np.ndarray, states: Changes, core: int
) -> bytes:
    """One core's records. Within a cycle ends come before starts, but an instruction's own end after its start."""
    nibbles = np.zeros(32, np.int64)
    for key, nibble in NIBBLE_OF.items():
        nibbles[key] = nibble
    mine = states.core == core
    cycle = np.concatenate([states.cycle[mine], start, end])
    nibble = np.concatenate([np.full(int(mine.sum()), STATE), nibbles[lane], nibbles[lane]])
    value = np.concatenate([states.mask[mine], INSTRUCTION_BITS | number, INSTRUCTION_BITS | END_BIT | number])
    phase = np.concatenate([np.zeros(int(mine.sum())), np.full(start.size, 2), np.where(end > start, 1, 3)])
    order = np.lexsort((phase, cycle))
    last = np.full(len(FINAL), int(cycle.max(initial=0)))
    return encode(
        np.concatenate([cycle[order], last]),
        np.concatenate([nibble[order], np.full(len(FINAL), NIBBLE_OF[Lane.SCALAR])]),
        np.concatenate([value[order], FINAL]),
    )


def pair(streams: dict[int, Records], names: list[str] | None = None) -> Timed:
    """Starts and ends put together, for each core's records. `names` are those of the cores, for the losses."""
    parts = [_pair(core, records, names[core] if names else f"core{core}") for core, records in streams.items()]
    if not parts:
        nothing = np.zeros(0, np.int64)
        return Timed(nothing, nothing, nothing, nothing, nothing, nothing.astype(bool))
    core, lane, number, start, end, lost = (
        np.concatenate([getattr(part, column) for part in parts])
        for column in ("core", "lane", "number", "start", "end", "lost")
    )
    return Timed(core, lane, number, start, end, lost, tuple(loss for part in parts for loss in part.losses))


def _pair(core: int, records: Records, name: str) -> Timed:
    points = records.only(Event.INSTRUCTION, Event.INSTRUCTION_END)
    shown = points.lane != Lane.SCALAR
    cycle, lane, number = points.cycle[shown], points.lane[shown], points.number[shown]
    begins = points.event[shown] == Event.INSTRUCTION
    order = np.lexsort((np.arange(cycle.size), number, lane))
    region, first = (lane * LIMIT + number)[order], begins[order]
    follows = np.zeros(order.size, bool)  # the next point of the region is its end
    if order.size:
        follows[:-1] = first[:-1] & ~first[1:] & (region[:-1] == region[1:])
    whole = np.flatnonzero(follows)
    ended = np.zeros(order.size, bool)
    ended[whole + 1] = True
    start_row, end_row = order[whole], order[whole + 1]
    no_end, no_start = order[first & ~follows], order[~first & ~ended]
    until = _next_start(lane, begins, cycle, int(records.cycle[-1]) if len(records) else 0)
    rows = np.concatenate([start_row, no_end])
    stop = np.concatenate([cycle[end_row], until[no_end]])
    lost = np.concatenate([np.zeros(start_row.size, bool), np.ones(no_end.size, bool)])
    place = np.argsort(rows, kind="stable")
    rows, stop, lost = rows[place], stop[place], lost[place]
    losses = _losses(core, name, lane, np.concatenate([no_end, no_start]))
    return Timed(np.full(rows.size, core), lane[rows], number[rows], cycle[rows], stop, lost, losses)


def _next_start(lane: np.ndarray, begins: np.ndarray, cycle: np.ndarray, last: int) -> np.ndarray:
    """When the next instruction after each point starts on the same pipe; `last` where none does."""
    found = np.full(cycle.size, last, np.int64)
    for one in np.unique(lane).tolist():
        mine = np.flatnonzero(lane == one)
        starts = mine[begins[mine]]
        at = np.searchsorted(starts, mine, side="right")
        has = at < starts.size
        found[mine[has]] = cycle[starts[at[has]]]
    return found


def _losses(core: int, name: str, lane: np.ndarray, missing: np.ndarray) -> tuple[Loss, ...]:
    """For each pipe how many points are missing: each lone point is one that its partner is missing of."""
    losses = []
    for one in np.unique(lane[missing]).tolist():
        count = int((lane[missing] == one).sum())
        total = int((lane == one).sum()) + count
        text = (
            f"InstrTimeline lost {count} of {total} points on {Lane(one).name} (core {name}); use --pipe to reduce "
            "traffic, or PipeTimeline / simulator."
        )
        losses.append(Loss("lost points", text, core, Lane(one), count, total))
    return tuple(losses)
