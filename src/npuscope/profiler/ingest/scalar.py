"""What an instruction goes through before its pipe has it: instruction cache, control unit (opprof.md 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from npuscope.profiler.ingest import scan
from npuscope.profiler.ingest.groups import grouped, number, ranks
from npuscope.profiler.ingest.text import LogText, read_parts
from npuscope.trace.timeline import UNKNOWN

PATTERNS = (
    (b"icache read address is ", scan.MISS),
    (b"lookup_tag is fetch req addr:", scan.FETCH),
    (b"is_single_issue instr, pc:", scan.CONTROL),
    (b"ccu do issue success.issue isa pc :", scan.CONTROL),
)
MISSED = b"status is MISS"
FETCHED, WORD_BYTES = 4, 4
"""One fetch brings so many instructions of so many bytes."""


def read_points(parts: Sequence[Path]) -> tuple[LogText, np.ndarray]:
    """(text, table of `scan.scan_points`) of an instruction cache or control unit log. Raises OSError."""
    text = read_parts(parts)
    joined = np.frombuffer(b"".join(pattern for pattern, _ in PATTERNS), np.uint8)
    starts = np.cumsum([0] + [len(pattern) for pattern, _ in PATTERNS])
    kinds = np.array([kind for _, kind in PATTERNS])
    return text, scan.scan_points(text.letters, joined, starts, kinds, np.frombuffer(MISSED, np.uint8))


def of_kind(points: np.ndarray, kind: int) -> np.ndarray:
    """The points of one kind, same table."""
    return points[:, points[scan.POINT_KIND] == kind]


def control_ticks(pc: np.ndarray, start: np.ndarray, points: np.ndarray) -> np.ndarray:
    """When the control unit took up each instruction, UNKNOWN where it does not say, (slices,). The k-th time that a pc
    is taken up belongs to its k-th slice; from the first that would lie after its start, a pc's order is not known."""
    found = np.full(pc.size, UNKNOWN, np.int64)
    taken = of_kind(points, scan.CONTROL)
    codes, examples = number(np.concatenate([pc, taken[scan.POINT_ADDRESS]]))
    order, begins = grouped(codes[pc.size :], examples.size)
    code = codes[: pc.size]
    rank = ranks(code, examples.size)
    known = np.flatnonzero(rank < np.diff(begins)[code])
    tick = taken[scan.POINT_TICK][order][begins[code[known]] + rank[known]]
    late = known[tick > start[known]]
    first_late = np.full(examples.size, pc.size, np.int64)
    np.minimum.at(first_late, code[late], rank[late])
    good = rank[known] < first_late[code[known]]
    found[known[good]] = tick[good]
    return found


def fetch_ticks(pc: np.ndarray, before: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The last fetch of each instruction before a moment, UNKNOWN where there was none, (slices,)."""
    found = np.full(pc.size, UNKNOWN, np.int64)
    fetches = of_kind(points, scan.FETCH)
    if not fetches.size or not pc.size:
        return found
    ahead = WORD_BYTES * np.arange(FETCHED)
    addresses = (fetches[scan.POINT_ADDRESS][:, None] + ahead).ravel()
    ticks = np.repeat(fetches[scan.POINT_TICK], FETCHED)
    codes, _ = number(np.concatenate([pc, addresses]))
    span = int(max(ticks.max(), before.max())) + 2
    moments = np.sort(codes[pc.size :] * span + ticks)
    place = np.searchsorted(moments, codes[: pc.size] * span + before) - 1
    nearest = moments[place.clip(0)]
    good = (place >= 0) & (nearest // span == codes[: pc.size])
    found[good] = nearest[good] % span
    return found
