"""Which set lets which wait go (opprof.md 2.6, 4.4)."""

from __future__ import annotations

import numpy as np

from npuscope.profiler.ingest.groups import number, ranks
from npuscope.profiler.ingest.lines import Lines
from npuscope.trace.timeline import EDGE_COLUMNS, EdgeKind, empty

SETS = ("SET_FLAG", "SET_FLAGI", "set_event", "SET_EVENT")
WAITS = ("WAIT_FLAG", "WAIT_FLAGI", "wait_event", "WAIT_EVENT")
FLAG_KEYS = (b"FLAG ID", b"FLAGID", b"EVENT ID", b"event_id")
BLOCK_SETS, BLOCK_WAITS = "SET_INTRA_BLOCK", "WAIT_INTRA_BLOCK"
"""Mnemonics of flags between the cores of one block begin with these."""
BLOCK_KEYS = (b"sync_id",)
BLOCK_IDS = 16
"""Flags between a cube core and each of its vector cores; above them, the cube core means the next vector core."""


def flag_edges(lines: Lines, rows: np.ndarray) -> np.ndarray:
    """(EDGE_COLUMNS, edges) inside a core; slices are places in `rows`, the slices' lines of the popped log. The k-th
    set of a flag goes with its k-th wait: the same operands mean the same flag."""
    words = lines.word[rows]
    sets = np.flatnonzero(np.isin(words, [w for w, name in enumerate(lines.mnemonics) if name in SETS]))
    waits = np.flatnonzero(np.isin(words, [w for w, name in enumerate(lines.mnemonics) if name in WAITS]))
    if not sets.size or not waits.size:
        return empty(EDGE_COLUMNS)
    both = rows[np.concatenate([sets, waits])]
    flags = lines.text.hashes(lines.starts[both], lines.ends[both])
    set_place, wait_place = match(flags[: sets.size], flags[sets.size :])
    numbers = lines.numbers(FLAG_KEYS, rows[sets[set_place]])
    return np.stack([sets[set_place], waits[wait_place], np.full(set_place.size, EdgeKind.FLAG), numbers])


def match(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the pairs of the k-th of each key on the left with the k-th of that key on the right."""
    codes, examples = number(np.concatenate([left, right]))
    left_code, right_code = codes[: left.size], codes[left.size :]
    span = max(left.size, right.size) + 1
    left_key = left_code * span + ranks(left_code, examples.size)
    right_key = right_code * span + ranks(right_code, examples.size)
    _, left_place, right_place = np.intersect1d(left_key, right_key, assume_unique=True, return_indices=True)
    order = np.argsort(left_place)
    return left_place[order], right_place[order]
