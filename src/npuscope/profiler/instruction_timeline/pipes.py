"""The pipes of the on-board timelines, and how a person chooses among them (opprof.md D1, 3.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from npuscope.errors import UserError
from npuscope.trace.timeline import UNKNOWN, Lane, Timeline
from npuscope.trace.values import among

PIPES = (Lane.SCALAR, Lane.VECTOR, Lane.CUBE, Lane.MTE1, Lane.MTE2, Lane.MTE3, Lane.FIXP)
"""The pipes in the order of the bits of a state mask."""
INSTRUMENTED = PIPES[1:]
"""The pipes whose instructions can be timed on-board: all but the scalar one."""
NAMES = {lane.name.lower(): lane for lane in INSTRUMENTED}


@dataclass(frozen=True, slots=True)
class PipeChoice:
    """Which instructions to time: those on `lanes`, and of the vector functions those of `simd` and `simt` kind."""

    lanes: frozenset[Lane] = frozenset(INSTRUMENTED)
    simd: bool = True
    simt: bool = True

    def chosen(self, timeline: Timeline) -> np.ndarray:
        """Which steps of a timeline are chosen, (steps,) bool. What runs inside a vector function is part of it."""
        return np.array([self._chooses(step.lane, "SIMT" in step.text.upper()) for step in timeline.steps], bool)

    def _chooses(self, lane: Lane, simt: bool) -> bool:
        return lane in self.lanes and (lane is not Lane.VECTOR or (self.simt if simt else self.simd))


EVERY_PIPE = PipeChoice()


def read_pipes(text: str) -> PipeChoice:
    """The value of ``--pipe`` or ``--instr-timeline-pipe``: pipes in any case, separated by ``|``, ``,`` or ``/``;
    `vector` is `simd` and `simt`. Raises UserError for anything else."""
    words = [word.strip().lower() for word in re.split(r"[|,/]", text)]
    if unknown := [word for word in words if word not in NAMES and word not in ("simd", "simt")]:
        raise UserError(
            "--instr-timeline-pipe only support pipes in [cube fixp vector simd simt mte1 mte2 mte3] and separated "
            f"by '|'. ({', '.join(repr(word) for word in unknown)})"
        )
    simd, simt = ("vector" in words or kind in words for kind in ("simd", "simt"))
    lanes = {NAMES[word] for word in words if word in NAMES} | ({Lane.VECTOR} if simd or simt else set())
    return PipeChoice(frozenset(lanes), simd, simt)


def timed(timeline: Timeline, choice: PipeChoice) -> np.ndarray:
    """The slices that an on-board timeline of chosen pipes shows, (those,) int64."""
    shown = among(timeline.slice("lane"), choice.lanes)
    step = timeline.slice("step")
    chosen = choice.chosen(timeline)
    return np.flatnonzero(shown & (timeline.slice("warp") == UNKNOWN) & (chosen[step] if chosen.size else shown))
