"""Scalar spans: from the instruction cache to the pipe's queue (opprof.md 4.4, D3, D4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.profiler.instruction_timeline.drawn import Drawn, Kind
from npuscope.trace.timeline import UNKNOWN, Lane, Timeline

ARCHITECTURES = ("2201",)
"""NPU architectures (A2 and A3) of which the vendor's tool draws these spans."""


@dataclass(frozen=True, slots=True)
class Spans:
    """One row for each slice with a span, (spans,) int64: the `slice`, when its instruction left the instruction cache
    (`fetch`), when the control unit took it up (`control`, UNKNOWN where that is not known) and when its pipe popped it
    (`start`). ``cache_time`` is from fetch to control, ``ccu_time`` from control to start; without control there is
    one span only, from fetch to start."""

    slice: np.ndarray
    fetch: np.ndarray
    control: np.ndarray
    start: np.ndarray

    def __len__(self) -> int:
        return int(self.slice.size)


def offers_spans(chip: Chip) -> bool:
    """Whether scalar spans are drawn of a chip."""
    return chip.arch in ARCHITECTURES


def spans(timeline: Timeline, drawn: Drawn) -> Spans:
    """The spans of all instructions but sets, barriers and cache misses; those without a fetch time have none."""
    fetch, control, start = (timeline.slice(name) for name in ("fetch", "control", "start"))
    has = (fetch != UNKNOWN) & (fetch <= start) & (timeline.slice("lane") != Lane.CACHEMISS)
    has &= (drawn.kind != Kind.SET) & (drawn.kind != Kind.BARRIER)
    which = np.flatnonzero(has)
    control = control[which]
    control = np.where((control < fetch[which]) | (control > start[which]), UNKNOWN, control)
    return Spans(which, fetch[which], control, start[which])
