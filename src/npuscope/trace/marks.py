"""Moments that a kernel marks with a number, for timelines."""

from __future__ import annotations

import numpy as np

from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES

TIME_STAMP = OPCODES.number("print_time_stamp")


def marks_of(rows: LaunchRows) -> np.ndarray:
    """The mark table of a timeline whose slices are the rows of a launch: (2, marks) int64, the row of each
    print_time_stamp and its description id."""
    marked = np.flatnonzero(rows.column("opcode") == TIME_STAMP)
    return np.stack([marked, rows.column("a")[marked]])
