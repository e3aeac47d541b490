"""What a simulator's trace shows besides slices."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.npu.chip import Chip
from npuscope.profiler.instruction_timeline.spans import offers_spans


@dataclass(frozen=True, slots=True)
class Shown:
    """`flags`: sets, waits and their arrows (a run with PipeUtilization alone hides them); `spans`: scalar spans;
    `throughput`: the MTE counters; `marks`: the USERMARK lane."""

    flags: bool = True
    spans: bool = True
    throughput: bool = True
    marks: bool = True


EVERYTHING = Shown()


def shown_of(chip: Chip) -> Shown:
    """Everything that a chip has."""
    return Shown(spans=offers_spans(chip))
