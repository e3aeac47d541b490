"""What moves between memories, in sums that several pages and rules need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN, Lane, Timeline


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one launch: `read` from GM and `written` to GM by the cores (through L2), `memory` what of it went to or
    came from the memory behind L2, `hits` and `misses` in L2 lines. `memory`, `hits` and `misses` are None where the
    source does not know them."""

    read: int
    written: int
    memory: int | None
    hits: int | None
    misses: int | None


def traffic(timeline: Timeline, chip: Chip) -> Traffic:
    """Sums over the transfers of a launch. Memory bytes are those of missed and evicted lines (opprof.md 3.2)."""
    source, target, size = timeline.transfer("source"), timeline.transfer("target"), timeline.transfer("bytes")
    from_gm, to_gm = source == Space.GM, target == Space.GM
    hits, misses, victims = (_sum(timeline.transfer(name), from_gm | to_gm) for name in ("hits", "misses", "victims"))
    line = chip.l2_line
    memory = None if misses is None else (misses + (victims or 0)) * line
    return Traffic(int(size[from_gm].sum()), int(size[to_gm].sum()), memory, hits, misses)


def _sum(column: np.ndarray, which: np.ndarray) -> int | None:
    mine = column[which]
    return None if (mine == UNKNOWN).any() else int(mine.sum())


PATHS = {
    (Space.GM, Space.UB): "gm_to_ub", (Space.GM, Space.L1): "gm_to_l1",
    (Space.GM, Space.L0A): "gm_to_l0a", (Space.GM, Space.L0B): "gm_to_l0b",
    (Space.UB, Space.GM): "ub_to_gm", (Space.L1, Space.GM): "l1_to_gm",
    (Space.L1, Space.L0A): "l1_to_l0a", (Space.L1, Space.L0B): "l1_to_l0b",
    (Space.L0C, Space.GM): "l0c_to_gm", (Space.L0C, Space.L1): "l0c_to_l1", (Space.L0C, Space.UB): "l0c_to_ub",
    (Space.L1, Space.UB): "l1_to_ub", (Space.UB, Space.L1): "ub_to_l1",
}  # fmt: skip


def ideal_cycles(timeline: Timeline, chip: Chip) -> np.ndarray:
    """Cycles that each transfer would take at the most that one core sustains on its way (opprof.md 6.3), (transfers,)
    float64; NaN where the chip publishes no figure for it."""
    rates = np.full((max(Space) + 1, max(Space) + 1), np.nan)
    for (source, target), name in PATHS.items():
        path = chip.path(name)
        if path is not None and path.ceiling is not None:
            rates[source, target] = path.ceiling * 1e9 / (timeline.mhz * 1e6)
        elif path is not None and path.port is not None:
            rates[source, target] = path.port
    return np.asarray(timeline.transfer("bytes") / rates[timeline.transfer("source"), timeline.transfer("target")])


COMPUTE = (Lane.VECTOR, Lane.CUBE)
"""The lanes that compute."""
COPY = (Lane.MTE2, Lane.MTE3, Lane.FIXP)
"""The lanes that move data to and from GM."""
