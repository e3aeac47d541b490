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
SPACES = np.full(64, UNKNOWN, np.int64)
"""The memory behind each unit."""
for _unit, _space in ((0, Space.GM), (1, Space.L1), (2, Space.L0A), (3, Space.L0B), (4, Space.L0C), (5, Space.BT),
                      (6, Space.FB)):
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
    return gather(scan.scan_moves(text.letters, text.lines))


def gather(lines: np.ndarray) -> Moves:
    """Lines of interfaces put together to stretches: one for each instruction and tag. The GM side says how much and
    when; where GM takes no part, the side that is read does. A request counts its bytes once, however many lines speak
    of it."""
    tick, unit, writes = lines[scan.MOVE_TICK], lines[scan.MOVE_UNIT].clip(0, SPACES.size - 1), lines[scan.MOVE_WRITES]
    stretch, examples = number(lines[scan.MOVE_INSTRUCTION], lines[scan.MOVE_TAG])
    count = examples.size
    space = SPACES[unit]
    source, target, sub = (np.full(count, UNKNOWN, np.int64) for _ in range(3))
    reads = writes == 0
    _first(source, stretch, space, reads)
    _first(target, stretch, space, ~reads)
    _first(sub, stretch, unit - scan.UB_UNIT, unit >= scan.UB_UNIT)
    with_gm = np.zeros(count, np.bool_)
    with_gm[stretch[unit == scan.GM_UNIT]] = True
    with_reads = np.zeros(count, np.bool_)
    with_reads[stretch[reads]] = True
    tells = np.where(with_gm[stretch], unit == scan.GM_UNIT, reads | ~with_reads[stretch])
    rows = np.flatnonzero(tells)
    of = stretch[rows]
    start, end = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(start, of, tick[rows])
    np.maximum.at(end, of, tick[rows])
    request, _ = number(of, lines[scan.MOVE_REQUEST][rows])
    sized = rows[lines[scan.MOVE_SIZE][rows] >= 0]
    kept = sized[np.unique(request[lines[scan.MOVE_SIZE][rows] >= 0], return_index=True)[1]]
    sizes = np.bincount(stretch[kept], lines[scan.MOVE_SIZE][kept], count).astype(np.int64)
    requests = np.bincount(stretch[kept], minlength=count)
    address = np.full(count, UNKNOWN, np.int64)
    _first(address, stretch, lines[scan.MOVE_ADDRESS], (unit == scan.GM_UNIT) & (lines[scan.MOVE_ADDRESS] >= 0))
    return Moves(
        lines[scan.MOVE_INSTRUCTION][examples], sub, source, target, address, sizes, requests, start, end
    )


def _first(out: np.ndarray, of: np.ndarray, values: np.ndarray, where: np.ndarray) -> None:
    """Put the first of the `values` that are there `where` into the rows that they are `of`."""
    rows = np.flatnonzero(where)[::-1]
    out[of[rows]] = values[rows]
