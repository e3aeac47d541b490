"""What one launch leaves in the L2 cache, the next one on the same arrays finds (opprof.md 5.4, application replay)."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuscope.cli.session import run_in_session
from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.npu.timing.l2 import cold
from npuscope.trace.recorder import Batch
from npuscope.trace.rows import launches
from npuscope.trace.timeline import Timeline

SCRIPT = """
import asc
import asc.runtime.config as config
import numpy as np

@asc.jit
def double(x: asc.GlobalAddress, z: asc.GlobalAddress):
    source, target = asc.GlobalTensor(), asc.GlobalTensor()
    source.set_global_buffer(x)
    target.set_global_buffer(z)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, 4096)
    asc.data_copy(local, source, 4096)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.add(local, local, local, 4096)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(target, local, 4096)

config.set_platform(config.Backend.Model)
first, second = np.ones(4096, np.float32), np.ones(4096, np.float32)
result = np.zeros(4096, np.float32)
for array in (first, first, second, result):
    double[1](array, result)
for _ in range(2):
    double[1](np.ones(4096, np.float32), np.zeros(4096, np.float32))  # memory that is given out again
"""


def misses(timeline: Timeline) -> tuple[int, int]:
    """L2 lines that the launch read and did not find, and those that it wrote."""
    both = timeline.transfer("misses")
    reads = timeline.transfer("source") == 0
    return int(both[reads].sum()), int(both[~reads].sum())


def test_same_arrays_hit_and_others_miss(tmp_path: Path) -> None:
    """16 KiB read and 16 KiB written by each launch, so the lines of 16 KiB when a side is not there."""
    pytest.importorskip("asc")
    path = tmp_path / "double.py"
    path.write_text(SCRIPT)
    batches: list[Batch] = []
    assert run_in_session((batches.append,), None, str(path), (), False)[0] == 0
    chip = load_chip("910B1")
    l2, lines = cold(chip), 4 * 4096 // chip.timing.memory.line
    found = [misses(time_launch(rows, chip, l2)) for rows in launches(batches)]
    cold_launch, again, other, in_place, new, newer = found
    assert cold_launch == (lines, lines)
    assert again == in_place == (0, 0)
    assert other == (lines, 0)
    assert new == newer == (lines, lines)
