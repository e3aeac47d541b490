"""Which instructions only wait: their length is time that a pipe stood still, not work."""

from __future__ import annotations

import re

import numpy as np

from npuscope.trace.timeline import Step, Timeline

WAITS = re.compile(r"WAIT|^BAR|BARRIER|^SYNC|^(?:KERNEL_)?END$")
"""In the text of a step: wait_flag and its kin, barriers, the synchronisation of all cores, the end of a kernel."""


DRAINS = re.compile(r"^SET_|^BAR|BARRIER|NOTIFY|POST")
"""Those that end when what stands before them in their pipe is done: sets, barriers, messages to another core."""
ENDS = re.compile(r"^(?:KERNEL_)?END$")
"""The end of a kernel: it lasts until all pipes of its core are done."""


def is_wait(step: Step) -> bool:
    """Whether a step does nothing but wait."""
    return WAITS.search(step.text.upper()) is not None


def waiting(timeline: Timeline) -> np.ndarray:
    """Which slices only wait, (slices,) bool."""
    return _of_slices(timeline, [is_wait(step) for step in timeline.steps])


def draining(timeline: Timeline) -> np.ndarray:
    """Which slices last until their pipe is done with what came before, (slices,) bool."""
    return _of_slices(timeline, [DRAINS.search(step.text.upper()) is not None for step in timeline.steps])


def ending(timeline: Timeline) -> np.ndarray:
    """Which slices last until every pipe of their core is done, (slices,) bool."""
    return _of_slices(timeline, [ENDS.search(step.text.upper()) is not None for step in timeline.steps])


def _of_slices(timeline: Timeline, by_step: list[bool]) -> np.ndarray:
    if not by_step:
        return np.zeros(timeline.slices.shape[1], bool)
    return np.array(by_step)[timeline.slice("step")]
