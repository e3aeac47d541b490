"""The log of the transfer units: what moves when between which memories (opprof.md 3.10, 4.2, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from npuscope.npu.timing.compiled import outer_free
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


SUB, SOURCE, TARGET, ADDRESS, SIZE, NUMBER, START, END = range(8)
"""Fields of `Moves` after the first, as rows of a table."""


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
    told = np.empty(stretch.size, np.bool_)
    _telling(stretch, unit, lines[scan.MOVE_WRITES], np.full(examples.size, WRITTEN), told)
    request, requests = number(np.where(told, stretch, -1), lines[scan.MOVE_REQUEST])
    table = np.full((len(fields(Moves)) - 1, examples.size), UNKNOWN, np.int64)
    table[[SIZE, NUMBER]] = 0
    _gather(lines, unit, stretch, told, request, np.zeros(requests.size, np.bool_), table)
    return Moves(lines[scan.MOVE_INSTRUCTION][examples], *table)


@outer_free
def _telling(stretch: np.ndarray, unit: np.ndarray, writes: np.ndarray, side: np.ndarray, told: np.ndarray) -> None:
    """Mark in `told` (lines,) which lines tell amount and time of their stretch. `side`: (stretches,), all WRITTEN."""
    for row in range(stretch.size):
        here = GM_SIDE if unit[row] == scan.GM_UNIT else (WRITTEN if writes[row] else READ)
        side[stretch[row]] = min(side[stretch[row]], here)
    for row in range(stretch.size):
        wanted = side[stretch[row]]
        here = GM_SIDE if unit[row] == scan.GM_UNIT else (WRITTEN if writes[row] else READ)
        told[row] = here == wanted


@outer_free
def _gather(
    lines: np.ndarray,
    unit: np.ndarray,
    stretch: np.ndarray,
    told: np.ndarray,
    request: np.ndarray,
    counted: np.ndarray,
    table: np.ndarray,
) -> None:
    """Fill `table` (fields of `Moves` after the first, stretches). `counted` is false for each of the requests."""
    for row in range(stretch.size):
        of = stretch[row]
        space = SPACES[unit[row]]
        if lines[scan.MOVE_WRITES, row]:
            if table[TARGET, of] == UNKNOWN:
                table[TARGET, of] = space
        elif table[SOURCE, of] == UNKNOWN:
            table[SOURCE, of] = space
        if unit[row] >= scan.UB_UNIT and table[SUB, of] == UNKNOWN:
            table[SUB, of] = unit[row] - scan.UB_UNIT
        if unit[row] == scan.GM_UNIT and table[ADDRESS, of] == UNKNOWN:
            table[ADDRESS, of] = lines[scan.MOVE_ADDRESS, row]
        if not told[row]:
            continue
        tick = lines[scan.MOVE_TICK, row]
        if table[START, of] == UNKNOWN or tick < table[START, of]:
            table[START, of] = tick
        table[END, of] = max(table[END, of], tick)
        size = lines[scan.MOVE_SIZE, row]
        if size >= 0 and not counted[request[row]]:
            counted[request[row]] = True
            table[SIZE, of] += size
            table[NUMBER, of] += 1
