"""C08: Mmad and Fixpipe that take turns on L0C by unit flag, on the simulated device itself.

pyasc 1.1 cannot say it: it passes MmadParams.unit_flag as one bit, so that 3 arrives as 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.sanitizer.suite import Suite
from npuscope.trace.schema import Space

entries()  # loads the library, which names the fields of parameter structs

A2, B2, CO1 = 2, 4, 7
SIZE, STEPS = 64, 3


def races(cube: Any, last: int, out: int) -> list[str]:
    """Two results of three steps of k each; `last` is the unit flag of the last Mmad of a result, `out` Fixpipe's."""
    cube.launch.capacity.update({Space.L0A: 1 << 16, Space.L0B: 1 << 16, Space.L0C: 1 << 17})
    ones = np.ones(SIZE * 16, np.float16)
    left, right = cube.local(ones, A2), cube.local(ones, B2)
    result = cube.local(np.zeros(SIZE * SIZE, np.float32), CO1)
    z = np.zeros((2, SIZE, SIZE), np.float32)
    config = construct("fixpipe_config", "", 1)
    for target in (cube.gm(z[0]), cube.gm(z[1])):
        for step in range(STEPS):
            flag = last if step == STEPS - 1 else min(last, 2)
            cube.run("mmad", result, left, right, construct("mmad_params", "", SIZE, SIZE, 16, flag, False, step == 0))
        values = (SIZE, SIZE, SIZE, SIZE, False, 0, 0, 1, 0, 0, out, False)
        cube.run("fixpipe", target, result, construct("fixpipe_params_v220", "", *values), config)
    assert (z == STEPS * 16).all()
    cube.recorder.end()
    suite = Suite(("race",))
    for batch in cube.batches:
        suite.check(batch)
    return sorted(finding.edge for finding in suite.findings)


def test_unit_flags_order_the_two_pipes(cube: Any) -> None:
    """2, 2, 3 and 3: silent (results of 16 fractals, so that the Mmads need no barrier among themselves)."""
    assert races(cube, last=3, out=3) == []


@pytest.mark.parametrize(("last", "out"), [(0, 0), (0, 3), (3, 0)])
def test_without_unit_flags_on_both_sides(cube: Any, last: int, out: int) -> None:
    """Fixpipe may read before the product is there, and the next product may come before Fixpipe has read."""
    assert races(cube, last, out) == ["FIX_M", "M_FIX"]
