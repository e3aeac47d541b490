"""How long the slices of a timeline are drawn, where that is not how long they took (opprof.md 2.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from npuscope.trace.timeline import Timeline


class Kind(IntEnum):
    """What is special about an instruction's slice."""

    PLAIN = 0
    SET = 1
    WAIT = 2
    BARRIER = 3


NAMES = {Kind.SET: "SET_FLAG", Kind.WAIT: "WAIT_FLAG"}
"""What the viewer wants flags to be called; it hides them by these names."""


def kind_of(text: str) -> Kind:
    """The kind of an instruction, from its mnemonic."""
    word = text.partition(" ")[0].upper()
    if word in ("SET_FLAG", "SET_FLAGI", "SET_EVENT"):
        return Kind.SET
    if word in ("WAIT_FLAG", "WAIT_FLAGI", "WAIT_EVENT"):
        return Kind.WAIT
    if word.partition(".")[0] in ("BAR", "PIPE_BARRIER"):
        return Kind.BARRIER
    return Kind.PLAIN


@dataclass(frozen=True, slots=True)
class Drawn:
    """Of each slice: its `kind`, and the cycles from `start` to `end` that it is drawn for, all (slices,) int64."""

    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @property
    def flag(self) -> np.ndarray:
        """Which slices are a set or a wait, (slices,) bool."""
        return (self.kind == Kind.SET) | (self.kind == Kind.WAIT)


def drawn(timeline: Timeline) -> Drawn:
    """A set and a barrier are drawn on their last cycle only; a wait begins where the slice before it ends, if that is
    during the wait (what its pipe did until then is drawn there)."""
    kinds = np.array([kind_of(step.text) for step in timeline.steps], np.int64)
    kind = kinds[timeline.slice("step")] if kinds.size else np.zeros(0, np.int64)
    end = timeline.slice("end")
    start = timeline.slice("start").copy()
    short = (kind == Kind.SET) | (kind == Kind.BARRIER)
    start[short] = np.maximum(end[short] - 1, 0)
    wait = kind == Kind.WAIT
    if wait.any():
        before = _end_before(timeline, kind)
        clipped = wait & (start < before) & (before < end)
        start[clipped] = before[clipped]
    return Drawn(kind, start, end)


def _end_before(timeline: Timeline, kind: np.ndarray) -> np.ndarray:
    """When the last of the slices of the same lane that end before a slice does ended, flags left out; -1: none."""
    end = timeline.slice("end")
    lane = timeline.slice("core") * 32 + timeline.slice("lane")
    order = np.argsort(lane * (int(end.max(initial=0)) + 2) + end, kind="stable")  # an unknown end is -1
    ordered_lane, place = lane[order], np.arange(order.size)
    counts = (kind[order] != Kind.SET) & (kind[order] != Kind.WAIT)
    last = np.maximum.accumulate(np.where(counts, place, -1))
    last = np.concatenate(([-1], last[:-1]))  # the slice itself does not count
    known = (last >= 0) & (ordered_lane[np.maximum(last, 0)] == ordered_lane)
    found = np.full(order.size, -1, np.int64)
    found[order] = np.where(known, end[order][np.maximum(last, 0)], -1)
    return found
