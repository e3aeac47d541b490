"""The log of the transfer units: what moves when between which memories (opprof.md 3.10, 4.2, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npuscope.profiler.ingest import scan
from npuscope.profiler.ingest.groups import number
from npuscope.profiler.ingest.text import read_parts
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN

NO_SUB = -1
GM_SIDE, READ, WRITTEN = range(3)
"""Sides of a transfer, the one that is to be believed first."""
LAST = np.iinfo(np.int64).max
SPACES = np.full(64, UNKNOWN, np.int64)
"""The memory behind each unit."""
for _unit, _space in (
    (0, Space.GM),
    (1, Space.L1),
    (2, Space.L0A),
    (3, Space.L0B),
    (4, Space.L0C),
    (5, Space.BT),
    (6, Space.FB),
):
    SPACES[_unit] = _space
SPACES[scan.UB_UNIT :] = Space.UB


@dataclass(frozen=True, slots=True)
class Moves:
    """Stretches of data, one row each: the instruction's id, the vector core whose UB took part (NO_SUB where none
    did), memories (UNKNOWN where the log does not say), address in GM, bytes, requests, first and last cycle."""

    instruction: np.ndarray
    sub: np.ndarray
    source: np.ndarray
    target: np.ndarray
    address: np.ndarray
    bytes: np.ndarray
    requests: np.ndarray
    start: np.ndarray
    end: np.ndarray


def read_moves(parts: Sequence[Path]) -> Moves:
    """The transfers of a core. Raises OSError."""
    text = read_parts(parts)
    return gather(scan.scan_moves(text.letters))


def gather(lines: np.ndarray) -> Moves:
    """Lines of interfaces put together to stretches: one for each instruction and tag. The GM side says how much and
    when; where GM takes no part, the side that is read does. A request counts its bytes once, however many lines speak
    of it."""
    stretch, examples = number(lines[scan.MOVE_INSTRUCTION], lines[scan.MOVE_TAG])
    unit = lines[scan.MOVE_UNIT].clip(0, SPACES.size - 1)
    here = np.where(unit == scan.GM_UNIT, GM_SIDE, np.where(lines[scan.MOVE_WRITES] != 0, WRITTEN, READ))
    side = np.full(examples.size, WRITTEN)
    np.minimum.at(side, stretch, here)
    told = here == side[stretch]
    request, requests = number(np.where(told, stretch, -1), lines[scan.MOVE_REQUEST])
    return _gathered(lines, unit, stretch, examples, told, request, requests.size)


def _gathered(
    lines: np.ndarray, unit: np.ndarray, stretch: np.ndarray, examples: np.ndarray, told: np.ndarray,
    request: np.ndarray, requests: int,
) -> Moves:  # fmt: skip
    """The stretches, whose numbers are `stretch` (lines,) and whose first lines are `examples`. `told` are the lines
    that tell of amount and time, `request` is the number of each line's request."""
    count, space, writes = examples.size, SPACES[unit], lines[scan.MOVE_WRITES] != 0
    start, end = np.full(count, LAST), np.full(count, UNKNOWN)
    np.minimum.at(start, stretch[told], lines[scan.MOVE_TICK, told])
    np.maximum.at(end, stretch[told], lines[scan.MOVE_TICK, told])
    sized = np.flatnonzero(told & (lines[scan.MOVE_SIZE] >= 0))
    counted = _first(request[sized], sized, requests)
    counted = counted[counted != UNKNOWN]
    size = np.zeros(count, np.int64)
    np.add.at(size, stretch[counted], lines[scan.MOVE_SIZE, counted])
    where = {
        "sub": (unit - scan.UB_UNIT, unit >= scan.UB_UNIT),
        "source": (space, ~writes & (space != UNKNOWN)),
        "target": (space, writes & (space != UNKNOWN)),
        "address": (lines[scan.MOVE_ADDRESS], (unit == scan.GM_UNIT) & (lines[scan.MOVE_ADDRESS] != UNKNOWN)),
    }
    first = {name: _first(stretch[known], values[known], count) for name, (values, known) in where.items()}
    return Moves(
        instruction=lines[scan.MOVE_INSTRUCTION][examples], **first, bytes=size,
        requests=np.bincount(stretch[counted], minlength=count), start=np.where(start == LAST, UNKNOWN, start), end=end,
    )  # fmt: skip


def _first(group: np.ndarray, values: np.ndarray, groups: int) -> np.ndarray:
    """The first value of each group, UNKNOWN for one without any, (groups,) int64."""
    found = np.full(groups, UNKNOWN, np.int64)
    found[group[::-1]] = values[::-1]
    return found
