"""Marks that a kernel sets in its own time: the USERMARK lane (opprof.md 3.5, 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.trace.timeline import Lane, Loss, Timeline

START = ("METRICS_PROF_START", "TRACE_START")
STOP = ("METRICS_PROF_STOP", "TRACE_STOP")
PROFILED = "METRICS_PROF"
"""The name of a stretch between metrics_prof_start and metrics_prof_stop, which have no ids."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a core's time that the kernel marked: its name, the core, the cycles, and the slices of the two
    instructions that mark it."""

    name: str
    core: int
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks in the order of core and start, and what could not be drawn."""

    marks: tuple[Mark, ...]
    losses: tuple[Loss, ...]


def user_marks(timeline: Timeline) -> Marks:
    """Pairs of a start and the stop that follows it, of one core and one mark. A start inside its own mark, a stop
    without a start and a start without a stop are told in one sentence for the mark and the core; the pairs that do
    fit are there."""
    names = core_names(timeline.launch)
    numbers = dict(zip(timeline.mark("slice").tolist(), timeline.mark("number").tolist(), strict=True))
    found: list[Mark] = []
    open_marks: dict[tuple[int, str], int] = {}
    wrong: dict[tuple[int, str], int] = {}
    for row, core, begins in _marking(timeline):
        name = f"USERMARK_{numbers[row]}" if row in numbers else PROFILED
        key = core, name
        if begins:
            wrong[key] = wrong.get(key, 0) + (key in open_marks)
            open_marks[key] = row
        elif (first := open_marks.pop(key, None)) is None:
            wrong[key] = wrong.get(key, 0) + 1
        else:
            found.append(Mark(name, core, *_stretch(timeline, first, row), first, row))
    for key in open_marks:
        wrong[key] = wrong.get(key, 0) + 1
    found.sort(key=lambda mark: (mark.core, mark.start))
    return Marks(tuple(found), tuple(_loss(names, *key, count) for key, count in sorted(wrong.items()) if count))


def _marking(timeline: Timeline) -> list[tuple[int, int, bool]]:
    """(slice, core, whether it starts) of the instructions that mark, in the order of their cores' programs."""
    starts = [step.text.upper() in START for step in timeline.steps]
    marking = np.array(
        [start or step.text.upper() in STOP for start, step in zip(starts, timeline.steps, strict=True)], bool
    )
    if not marking.any():
        return []
    step = timeline.slice("step")
    rows = np.flatnonzero(marking[step])
    order = np.argsort(timeline.slice("start")[rows], kind="stable")
    return [(row, int(timeline.slice("core")[row]), starts[int(step[row])]) for row in rows[order].tolist()]


def _stretch(timeline: Timeline, first: int, last: int) -> tuple[int, int]:
    return int(timeline.slice("start")[first]), int(timeline.slice("end")[last])


def _loss(names: list[str], core: int, name: str, count: int) -> Loss:
    text = (
        f"Failed to create userMark {name} for {names[core]} because loop nesting exists or "
        "TraceStart is not equal to TraceStop."
    )
    return Loss("user mark", text, core, Lane.USERMARK, count)
