"""Numbered regions: what lets an on-board run time single instructions, and how many a pipe has (opprof.md 3.6, D2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npuscope.profiler.instruction_timeline.pipes import EVERY_PIPE, NAMES, PipeChoice
from npuscope.trace.timeline import Lane, Loss, Timeline

LIMIT = 512
"""Regions that a pipe has on chips of which nothing else is known: nine bits of number (opprof.md D2, from DES)."""

_MAP = re.compile(r"region_id=(\d{1,4}),\s*pipe=(\w+),.*?pc=0[xX]([0-9a-fA-F]+),\s*opcode=([\w.-]+)")
_OVERFLOW = re.compile(r"all dfx ids consumed.*?pipe=(\w+)|pipe=(\w+).*?all dfx ids consumed")


@dataclass(frozen=True, slots=True)
class Region:
    """One instruction of the code that has a number on its pipe."""

    lane: Lane
    number: int
    address: int
    name: str


@dataclass(frozen=True, slots=True)
class Regions:
    """The instructions that are timed. `step` gives the step of each (lane, number), `numbers` (steps,) int64 the
    number of each step, -1 where it has none; `losses` tell of pipes that have more instructions than numbers."""

    step: Mapping[tuple[int, int], int]
    numbers: np.ndarray
    losses: tuple[Loss, ...] = ()


def number_regions(timeline: Timeline, choice: PipeChoice = EVERY_PIPE, limit: int = LIMIT) -> Regions:
    """Give the instructions of each pipe numbers in the order of their addresses, as long as there are any."""
    chosen = np.flatnonzero(choice.chosen(timeline)).tolist()
    step: dict[tuple[int, int], int] = {}
    numbers = np.full(len(timeline.steps), -1, np.int64)
    count: dict[Lane, int] = {}
    for row in sorted(chosen, key=lambda row: timeline.steps[row].address):
        lane = timeline.steps[row].lane
        number = count.get(lane, 0)
        count[lane] = number + 1
        if number < limit:
            step[int(lane), number] = row
            numbers[row] = number
    return Regions(step, numbers, overflow({lane: total for lane, total in count.items() if total > limit}, limit))


def overflow(totals: Mapping[Lane, int], limit: int = LIMIT) -> tuple[Loss, ...]:
    """A loss for each pipe that has more instructions than numbers: `totals` says how many it has."""
    text = (
        f"InstrTimeline of pipes[{', '.join(lane.name for lane in sorted(totals))}] is incomplete because these pipes "
        f"have more than {limit} instructions."
    )
    return tuple(Loss("region overflow", text, -1, lane, totals[lane] - limit, totals[lane]) for lane in sorted(totals))


@dataclass(frozen=True, slots=True)
class RegionMap:
    """What a compiler says of the regions that it made: `regions` by (lane, number), `bad` lines that say nothing."""

    regions: Mapping[tuple[int, int], Region] = field(default_factory=dict)
    bad: int = 0


def read_region_map(text: str) -> RegionMap:
    """Lines ``region_id=3,pipe=mte2,...,pc=0x1c,opcode=MOV_OUT_TO_UB``; what is no such line is counted."""
    found: dict[tuple[int, int], Region] = {}
    bad = 0
    for line in text.splitlines():
        match = _MAP.search(line)
        lane = NAMES.get(match[2].lower()) if match else None
        if match is None or lane is None:
            bad += bool(line.strip())
            continue
        region = Region(lane, int(match[1]), int(match[3], 16), match[4])
        found[int(lane), region.number] = region
    return RegionMap(found, bad)


def overflowed_pipes(log: str) -> tuple[Lane, ...]:
    """The pipes of which a compiler's log says that all numbers were used up, in the order of their numbers."""
    words = (next(filter(None, match)).lower() for match in _OVERFLOW.findall(log))
    return tuple(sorted({NAMES[word] for word in words if word in NAMES}))
