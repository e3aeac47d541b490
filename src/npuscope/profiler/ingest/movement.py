"""Transfers of the transfer logs, given to the slices that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuscope.profiler.ingest.core import MOVING, CoreLog
from npuscope.profiler.ingest.files import DumpFolder
from npuscope.profiler.ingest.losses import homeless, unread_file
from npuscope.profiler.ingest.transfers import NO_SUB, Moves, read_moves
from npuscope.trace.schema import Space
from npuscope.trace.timeline import SLICE_COLUMNS, TRANSFER_COLUMNS, UNKNOWN, Lane, Loss, empty

SOURCES = {Lane.MTE2: Space.GM, Lane.FIXP: Space.L0C, Lane.MTE1: Space.L1}
TARGETS = {Lane.MTE3: Space.GM, Lane.FIXP: Space.GM}
"""Memories that a lane reads from or writes to, where the log does not say."""


def transfer_table(dumps: DumpFolder, logs: Sequence[CoreLog], slices: np.ndarray) -> tuple[np.ndarray, list[Loss]]:
    """((TRANSFER_COLUMNS, transfers), what could not be read or has no instruction)."""
    offsets = np.cumsum([0] + [log.count for log in logs])
    cubes = np.array([log.files.kind == "cube" for log in logs])
    tables, losses = [empty(TRANSFER_COLUMNS)], []
    for number, parts in dumps.transfers.items():
        mine = [(log, int(offset)) for log, offset in zip(logs, offsets, strict=False) if log.files.number == number]
        if not mine:
            continue
        try:
            moves = read_moves(parts)
        except OSError as error:
            losses.append(unread_file(parts[0], error.strerror or str(error)))
            continue
        owner = _owners(moves, mine)
        lost = int((owner < 0).sum())
        if lost:
            losses.append(homeless(f"core{number}", lost, owner.size))
        tables.append(_table(moves, owner, slices, cubes)[:, owner >= 0])
    return np.concatenate(tables, axis=1), losses


def _owners(moves: Moves, logs: Sequence[tuple[CoreLog, int]]) -> np.ndarray:
    """The slice of each move, -1 where no core has it. A move that names a vector core's UB is that core's; any other
    is the cube core's where that has such an instruction, else the first's that has."""
    owner = np.full(moves.instruction.size, -1, np.int64)
    for log, offset in sorted(logs, key=lambda pair: pair[0].files.kind == "vec"):
        ident = log.ident
        rows = np.flatnonzero((ident >= 0) & np.isin(log.column("lane"), MOVING))
        rows = rows[np.argsort(ident[rows], kind="stable")]
        if not rows.size:
            continue
        place = np.searchsorted(ident[rows], moves.instruction).clip(max=rows.size - 1)
        fits = ident[rows[place]] == moves.instruction
        if log.files.kind == "vec":
            fits &= (moves.sub == NO_SUB) | (moves.sub == log.files.sub)
        elif len(logs) > 1:
            fits &= moves.sub == NO_SUB
        taken = fits & (owner < 0)
        owner[taken] = rows[place[taken]] + offset
    return owner


def _table(moves: Moves, owner: np.ndarray, slices: np.ndarray, cubes: np.ndarray) -> np.ndarray:
    lane = slices[SLICE_COLUMNS.index("lane")][owner]
    near = np.where(cubes[slices[SLICE_COLUMNS.index("core")][owner]], Space.L1, Space.UB)
    unknown = np.full(owner.size, UNKNOWN, np.int64)
    source, target = moves.source.copy(), moves.target.copy()
    for memory, known, away in ((source, SOURCES, Lane.MTE3), (target, TARGETS, Lane.MTE2)):
        for place, space in known.items():
            memory[(memory == UNKNOWN) & (lane == place)] = space
        open_ones = (memory == UNKNOWN) & (lane == away)
        memory[open_ones] = near[open_ones]
    with_gm = (source == Space.GM) | (target == Space.GM)
    cache = np.where(with_gm, unknown, 0)
    values = {
        "slice": owner,
        "source": source,
        "target": target,
        "address": moves.address,
        "bytes": moves.bytes,
        "requests": moves.requests,
        "hits": cache,
        "misses": cache,
        "victims": cache,
        "start": moves.start,
        "end": moves.end,
    }
    return np.stack([values[name] for name in TRANSFER_COLUMNS])
