"""Which instructions only wait: their length is time that a pipe stood still, not work."""

from __future__ import annotations

import re

import numpy as np

from npuscope.trace.timeline import Step, Timeline

WAITS = re.compile(r"WAIT|^BAR|BARRIER|^SYNC")
"""In the text of a step: wait_flag and its kin, barriers, and the synchronisation of all cores."""


def is_wait(step: Step) -> bool:
    """Whether a step does nothing but wait."""
    return WAITS.search(step.text.upper()) is not None


def waiting(timeline: Timeline) -> np.ndarray:
    """Which slices only wait, (slices,) bool."""
    if not timeline.steps:
        return np.zeros(timeline.slices.shape[1], bool)
    return np.array([is_wait(step) for step in timeline.steps])[timeline.slice("step")]
