"""The least time that a launch can take, for tile kernels: their traces have no pipes to time."""

from __future__ import annotations

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import Space

NANOSECONDS = 1000.0
"""In a microsecond."""


def least_time(rows: LaunchRows, chip: Chip) -> int:
    """Nanoseconds: what passes around the cores' work, and the global memory's bytes at the chip's theoretical rate.

    A lower bound by a roofline whose only roof is the memory: no access is taken to hit the L2 cache, and computing
    is free. The overheads are those of a launch in the timing model.
    """
    bytes_per_nanosecond = chip.bandwidth.gm  # GB/s
    launch = chip.timing.launch
    return round((launch.overhead_us + launch.close_us) * NANOSECONDS + gm_bytes(rows) / bytes_per_nanosecond)


def gm_bytes(rows: LaunchRows) -> int:
    """Bytes of global memory that the accesses of a launch touch, each access for itself."""
    spaces = np.array([buffer.space for buffer in rows.buffers], np.int64)
    buffers = rows.access_column("buffer")
    # An access without a buffer goes through a pointer that no argument is behind: global memory.
    in_gm = buffers < 0
    in_gm[~in_gm] = spaces[buffers[~in_gm]] == Space.GM
    footprints, counts = np.unique(rows.access_column("footprint")[in_gm], return_counts=True)
    return sum(count * _bytes(rows, number) for number, count in zip(footprints.tolist(), counts.tolist(), strict=True))


def _bytes(rows: LaunchRows, number: int) -> int:
    """Bytes that an access with this footprint touches; a negative number is one of explicit offsets."""
    if number < 0:
        explicit = rows.explicit[-number - 1]
        return int(explicit.starts.size) * explicit.nbytes
    footprint = FOOTPRINTS[number]
    return int(footprint.starts().size) * footprint.nbytes
