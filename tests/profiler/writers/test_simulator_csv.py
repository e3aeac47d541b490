"""The simulator's tables (opprof.md 2.5)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.chip import load_chip
from npuscope.npu.machine import mixed_cores
from npuscope.profiler.profile import Profile
from npuscope.profiler.writers.csv import table_text
from npuscope.profiler.writers.simulator_csv import QUOTED, simulator_tables
from npuscope.trace.schema import Launch, Site, SourceFrame
from npuscope.trace.timeline import SLICE_COLUMNS, UNKNOWN, Lane, Source, Step, Timeline

STEPS = [
    Step(0x11FE3D08, "MOV_OUT_TO_UB", Lane.MTE2, Site("x", (SourceFrame("k.py", 4), SourceFrame("k.py", 9)))),
    Step(0x11FE3D0C, "VADD", Lane.VECTOR, Site("x", (SourceFrame("k.py", 5),))),
    Step(0x11FE3D10, "NOP", Lane.SCALAR, Site("x")),
]
ROWS = (
    (1, Lane.MTE2, 0, 0, 3000), (1, Lane.MTE2, 0, 1500, 4000), (1, Lane.VECTOR, 1, 4000, 4010),
    (1, Lane.SCALAR, 2, 0, 1), (0, Lane.SCALAR, 2, 5, 2**32),
)  # fmt: skip


def made() -> Profile:
    rows = [dict(zip(("core", "lane", "step", "start", "end"), values, strict=True)) for values in ROWS]
    slices = np.array([[row.get(name, UNKNOWN) for name in SLICE_COLUMNS] for row in rows], np.int64).T.copy()
    launch = Launch(0, "k", "Ascend910B1", mixed_cores(1), (1,), {}, {})
    details = ["Dst:UB,Src:OUT", "later", "", "", ""]
    timeline = Timeline(launch, "Ascend910B1", 1850.0, Source.MODEL, 2**32, 0, STEPS, slices, details)
    return Profile(timeline, load_chip("910B1"))


def test_tables_of_each_core() -> None:
    found = {name: (code, instructions) for name, code, instructions in simulator_tables(made())}
    assert list(found) == ["core0.cubecore0", "core0.veccore0", "core0.veccore1"]
    code, instructions = found["core0.veccore0"]
    assert (code.name, instructions.name) == ("core0.veccore0_code_exe", "core0.veccore0_instr_exe")
    # 5500 cycles in all, of which 0 to 4000 are covered: 4000 / 1850 MHz; an inner line only, not its caller
    assert table_text(code) == "code,call_count,cycles,running_time(us)\nk.py:4,2,5500,2.16\nk.py:5,1,10,0.01\n"
    assert table_text(instructions, QUOTED) == (
        "instr,addr,pipe,call_count,cycles,running_time(us),detail\n"
        'MOV_OUT_TO_UB,0x11fe3d08,MTE2,2,5500,2.16,"Dst:UB,Src:OUT"\n'
        'VADD,0x11fe3d0c,VECTOR,1,10,0.01,""\n'
        'NOP,0x11fe3d10,SCALAR,1,1,0.00,""\n'
    )
    assert found["core0.veccore1"][0].rows == ()


def test_cycles_end_at_what_the_viewer_can_hold() -> None:
    tables = {name: instructions for name, _, instructions in simulator_tables(made())}
    assert tables["core0.cubecore0"].column("cycles") == [2**31 - 1]
