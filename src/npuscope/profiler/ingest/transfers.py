"""The log of the transfer units: what moves when between which memories (opprof.md 3.10, 4.2, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit

from npuscope.profiler.ingest import scan
from npuscope.profiler.ingest.groups import number
from npuscope.profiler.ingest.text import read_parts
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN

NO_SUB = -1
GM_SIDE, READ, WRITTEN = range(3)
"""Sides of a transfer, the one that is to be believed first."""
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
    told = _telling(stretch, unit, lines[scan.MOVE_WRITES], examples.size)
    request, requests = number(np.where(told, stretch, -1), lines[scan.MOVE_REQUEST])
    table = _gather(lines, unit, stretch, examples.size, told, request, requests.size)
    return Moves(lines[scan.MOVE_INSTRUCTION][examples], *table)


@njit(cache=True, nogil=True)
def _telling(stretch: np.ndarray, unit: np.ndarray, writes: np.ndarray, count: int) -> np.ndarray:
    """Which lines tell amount and time of their stretch, (lines,) bool."""
    side = np.full(count, WRITTEN)
    for row in range(stretch.size):
        here = GM_SIDE if unit[row] == scan.GM_UNIT else (WRITTEN if writes[row] else READ)
        side[stretch[row]] = min(side[stretch[row]], here)
    told = np.empty(stretch.size, np.bool_)
    for row in range(stretch.size):
        wanted = side[stretch[row]]
        here = GM_SIDE if unit[row] == scan.GM_UNIT else (WRITTEN if writes[row] else READ)
        told[row] = here == wanted
    return told


@njit(cache=True, nogil=True)
def _gather(
    lines: np.ndarray,
    unit: np.ndarray,
    stretch: np.ndarray,
    count: int,
    told: np.ndarray,
    request: np.ndarray,
    requests: int,
) -> np.ndarray:
    """(8, stretches): the fields of `Moves` after the first."""
    table = np.full((8, count), UNKNOWN, np.int64)
    sub, source, target, address, size, number_of, start, end = table
    size[:] = 0
    number_of[:] = 0
    counted = np.zeros(requests, np.bool_)
    for row in range(stretch.size):
        of = stretch[row]
        space = SPACES[unit[row]]
        if lines[scan.MOVE_WRITES, row]:
            if target[of] == UNKNOWN:
                target[of] = space
        elif source[of] == UNKNOWN:
            source[of] = space
        if unit[row] >= scan.UB_UNIT and sub[of] == UNKNOWN:
            sub[of] = unit[row] - scan.UB_UNIT
        if unit[row] == scan.GM_UNIT and address[of] == UNKNOWN:
            address[of] = lines[scan.MOVE_ADDRESS, row]
        if not told[row]:
            continue
        tick = lines[scan.MOVE_TICK, row]
        if start[of] == UNKNOWN or tick < start[of]:
            start[of] = tick
        end[of] = max(end[of], tick)
        bytes_ = lines[scan.MOVE_SIZE, row]
        if bytes_ >= 0 and not counted[request[row]]:
            counted[request[row]] = True
            size[of] += bytes_
            number_of[of] += 1
    return table
