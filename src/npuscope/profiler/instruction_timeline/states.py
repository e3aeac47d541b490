"""When each pipe of a core is busy: the pipe timeline (opprof.md 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.cores import sub_block_names
from npuscope.profiler.instruction_timeline.drawn import Kind, kind_of
from npuscope.profiler.instruction_timeline.pipes import PIPES
from npuscope.profiler.instruction_timeline.records import Event, Records
from npuscope.trace.timeline import UNKNOWN, Lane, Loss, Timeline
from npuscope.trace.values import among

SAMPLED = 6
"""Cores whose pipes the hardware can watch at once, each with its cube and two vector cores: 18 channels."""
CLASSES = ("kickstart", "dispatch", "status", "execute")


@dataclass(frozen=True, slots=True)
class Intervals:
    """Stretches of time, (intervals,) int64 each: `core` (index in ``launch.cores``), `lane`, `start` and `end`."""

    core: np.ndarray
    lane: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return int(self.core.size)


@dataclass(frozen=True, slots=True)
class Changes:
    """The mask of the pipes (bits in the order of `pipes.PIPES`) of each core from each moment on, (changes,) int64."""

    core: np.ndarray
    cycle: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True, slots=True)
class PipeTimeline:
    """`busy` are the intervals in which a pipe does work; `states` has the masks of each of :data:`CLASSES`: a pipe has
    an instruction on its way to it (kickstart), waiting in its queue (dispatch), in it at all (status; a wait is), or
    at work (execute). `losses` says which cores were not watched."""

    busy: Intervals
    states: dict[str, Changes]
    losses: tuple[Loss, ...] = ()


def pipe_timeline(timeline: Timeline, cores: int | None = SAMPLED) -> PipeTimeline:
    """The pipe timeline of the first `cores` cores, None for all."""
    blocks = np.array([block for block, _ in sub_block_names(timeline.launch)], np.int64)
    known = np.unique(blocks)
    watched = known if cores is None else known[:cores]
    losses: tuple[Loss, ...] = ()
    if watched.size < known.size:
        text = f"PipeTimeline shows {watched.size} of {known.size} cores: the hardware watches no more at once."
        losses = (Loss("sampled cores", text, -1, None, int(known.size - watched.size), int(known.size)),)
    shown = np.isin(blocks, watched)[timeline.slice("core")] & among(timeline.slice("lane"), PIPES)
    shown &= timeline.slice("warp") == UNKNOWN
    plain = np.array([kind_of(step.text) is Kind.PLAIN for step in timeline.steps], bool)
    working = shown & (plain[timeline.slice("step")] if plain.size else shown)
    control, issue, start, end = (timeline.slice(name) for name in ("control", "issue", "start", "end"))
    stretches = {
        "kickstart": (shown & (control != UNKNOWN) & (issue != UNKNOWN), control, issue),
        "dispatch": (shown & (issue != UNKNOWN), issue, start),
        "status": (shown, start, end),
        "execute": (working, start, end),
    }
    merged = {
        name: _merged(timeline.slice("core")[rows], timeline.slice("lane")[rows], first[rows], last[rows])
        for name, (rows, first, last) in stretches.items()
    }
    return PipeTimeline(merged["execute"], {name: changes(found) for name, found in merged.items()}, losses)


def _merged(core: np.ndarray, lane: np.ndarray, start: np.ndarray, end: np.ndarray) -> Intervals:
    """Intervals of each lane that neither overlap nor touch, sorted by core, lane and start."""
    keep = end > start
    core, lane, start, end = core[keep], lane[keep], start[keep], end[keep]
    order = np.lexsort((start, lane, core))
    core, lane, start, end = core[order], lane[order], start[order], end[order]
    if not order.size:
        return Intervals(core, lane, start, end)
    group = core * 32 + lane
    far = np.cumsum(np.concatenate(([0], (group[1:] != group[:-1]).astype(np.int64)))) * (int(end.max()) + 1)
    reach = np.maximum.accumulate(end + far)  # groups are laid out one after the other, so that one pass will do
    first = np.flatnonzero(np.concatenate(([True], (start + far)[1:] > reach[:-1])))
    last = np.append(first[1:], order.size) - 1
    return Intervals(core[first], lane[first], start[first], (reach - far)[last])


def changes(found: Intervals) -> Changes:
    """The masks that some intervals make; those of one lane must not touch."""
    bits = np.zeros(32, np.int64)
    for bit, lane in enumerate(PIPES):
        bits[lane] = 1 << bit
    core = np.tile(found.core, 2)
    cycle = np.concatenate([found.start, found.end])
    step = np.concatenate([bits[found.lane], -bits[found.lane]])
    order = np.lexsort((cycle, core))
    core, cycle, mask = core[order], cycle[order], np.cumsum(step[order])
    last = np.ones(order.size, bool)
    last[:-1] = (core[1:] != core[:-1]) | (cycle[1:] != cycle[:-1])
    return Changes(core[last], cycle[last], mask[last])


def busy_intervals(records: Records, core: int = 0) -> Intervals:
    """The intervals that the state records of one stream tell of; a pipe that is still busy at the end is so until the
    last record."""
    states = records.only(Event.STATE)
    end = int(records.cycle[-1]) if len(records) else 0
    parts: list[tuple[Lane, np.ndarray, np.ndarray]] = []
    for bit, lane in enumerate(PIPES):
        on = np.concatenate(([0], states.number >> bit & 1, [0]))
        turn = np.diff(on)
        times = np.append(states.cycle, end)
        parts.append((lane, times[turn > 0], times[turn < 0]))
    lanes = np.concatenate([np.full(start.size, int(lane)) for lane, start, _ in parts])
    starts, ends = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
    keep = ends > starts
    return Intervals(np.full(int(keep.sum()), core), lanes[keep], starts[keep], ends[keep])
