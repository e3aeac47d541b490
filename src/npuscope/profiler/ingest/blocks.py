"""Flags between the cube core of a block and its vector cores (opprof.md 2.6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npuscope.profiler.ingest.core import CoreLog
from npuscope.profiler.ingest.flags import BLOCK_IDS, BLOCK_KEYS, BLOCK_SETS, BLOCK_WAITS, match
from npuscope.trace.schema import CoreInfo, CoreType
from npuscope.trace.timeline import EDGE_COLUMNS, SLICE_COLUMNS, EdgeKind, Step, empty

FROM_CUBE, FROM_VECTOR = 0, 1


def block_edges(
    logs: Sequence[CoreLog], infos: Sequence[CoreInfo], steps: Sequence[Step], slices: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """(EDGE_COLUMNS, edges): the k-th set of a flag goes with its k-th wait. Flag n of a cube core is flag n of vector
    core 0 below BLOCK_IDS, and flag n - BLOCK_IDS of vector core 1 from there on."""
    names = np.array([step.text for step in steps])
    step = slices[SLICE_COLUMNS.index("step")]
    start = slices[SLICE_COLUMNS.index("start")]
    sides = []
    for prefix in (BLOCK_SETS, BLOCK_WAITS):
        rows = np.flatnonzero(np.char.startswith(names, prefix)[step]) if names.size else np.zeros(0, np.int64)
        rows = rows[np.argsort(start[rows], kind="stable")]
        sides.append((rows, *_keys(rows, prefix == BLOCK_SETS, logs, infos, slices, offsets)))
    (sets, set_keys, numbers), (waits, wait_keys, _) = sides
    if not sets.size or not waits.size:
        return empty(EDGE_COLUMNS)
    left, right = match(set_keys, wait_keys)
    good = set_keys[left] >= 0
    left, right = left[good], right[good]
    return np.stack([sets[left], waits[right], np.full(left.size, EdgeKind.CROSS), numbers[left]])


def _keys(
    rows: np.ndarray,
    is_set: bool,
    logs: Sequence[CoreLog],
    infos: Sequence[CoreInfo],
    slices: np.ndarray,
    offsets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(a number for the flag of each row, negative where it is not known; the flag's id)."""
    keys, numbers = np.full(rows.size, -1, np.int64), np.full(rows.size, -1, np.int64)
    owner = slices[SLICE_COLUMNS.index("core")][rows]
    for core in np.unique(owner).tolist():
        log, info = logs[core], infos[core]
        mine = np.flatnonzero(owner == core)
        own = rows[mine] - offsets[core]
        ids = _ids(log, own)
        cube = info.type is CoreType.AIC
        block = int(info.label.removeprefix("core").split(".")[0])
        vector = ids // BLOCK_IDS if cube else info.sub_block
        source = FROM_CUBE if cube == is_set else FROM_VECTOR
        key = ((block * 64 + vector) * BLOCK_IDS + ids % BLOCK_IDS) * 2 + source
        keys[mine], numbers[mine] = np.where(ids < 0, -1 - mine, key), ids
    return keys, numbers


def _ids(log: CoreLog, own: np.ndarray) -> np.ndarray:
    found = np.full(own.size, -1, np.int64)
    for number, text in enumerate(log.texts):
        here = np.flatnonzero(log.source[own] == number)
        found[here] = text.first_numbers(BLOCK_KEYS, log.starts[own[here]], log.ends[own[here]])
    return found
