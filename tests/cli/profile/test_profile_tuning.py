"""`npuscope profile` on kernels before and after a change: what the change does to the figures (opprof.md 7: T29, T56 to
T58; design cases: one and several tiling keys)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HEAD = """
import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np
config.set_platform(config.Backend.Model)
"""

TILED = (
    HEAD
    + """
@asc.jit
def tiled(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int, tile: asc.ConstExpr[int], depth: asc.ConstExpr[int]):
    start = asc.get_block_idx() * tiles * tile
    source = asc.GlobalTensor()
    target = asc.GlobalTensor()
    source.set_global_buffer(x + start, tiles * tile)
    target.set_global_buffer(z + start, tiles * tile)
    pipe = asc.TPipe()
    ins = asc.TQue(asc.TPosition.VECIN, depth)
    outs = asc.TQue(asc.TPosition.VECOUT, depth)
    pipe.init_buffer(ins, depth, tile * 4)
    pipe.init_buffer(outs, depth, tile * 4)
    for i in range(tiles):
        a = ins.alloc_tensor(x.dtype)
        asc.data_copy(a, source[i * tile:], tile)
        ins.enque(a)
        b = ins.deque(x.dtype)
        c = outs.alloc_tensor(x.dtype)
        asc.exp(c, b, tile)
        asc.add(c, c, b, tile)
        asc.mul(c, c, b, tile)
        outs.enque(c)
        ins.free_tensor(b)
        d = outs.deque(x.dtype)
        asc.data_copy(target[i * tile:], d, tile)
        outs.free_tensor(d)

x = np.linspace(-1, 1, 2 * 12 * 2048, dtype=np.float32)
for depth in (1, 2):
    z = np.zeros_like(x)
    tiled[2](x, z, 12, 2048, depth)
    np.testing.assert_allclose(z, (np.exp(x) + x) * x, rtol=1e-5, atol=1e-6)
"""
)
"""Twelve tiles on each of two cores with one buffer in each queue, then with two: two tiling keys of one kernel."""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trace of TILED's two launches."""
    return recorded(tmp_path_factory.mktemp("tuned"), TILED)


def recorded(folder: Path, text: str) -> Path:
    """Record a script in this folder."""
    pytest.importorskip("asc")
    (folder / "script.py").write_text(text)
    source = str(Path(__file__).resolve().parents[3] / "src")
    command = [sys.executable, "-m", "npuscope", "record", "-o", "trace", str(folder / "script.py")]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def launches(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "report" / "profile.json").read_text())["launches"]
    return found


def covered(spans: list[tuple[float, float]], ticks: int = 200) -> np.ndarray:
    """Which of the moments of a launch, `ticks` a microsecond, the spans cover."""
    moments = np.zeros(200 * ticks, bool)
    for start, end in spans:
        moments[round(start * ticks) : round(end * ticks)] = True
    return moments


def figures(path: Path) -> tuple[float, float]:
    """(overlap of MTE2 and VECTOR as a share of the smaller, microseconds of WAIT_FLAG on VECTOR) of a core's lanes in
    the simulator's trace."""
    events = json.loads(path.read_text())["traceEvents"]
    mine = [event for event in events if event["pid"] == "core0.veccore0" and event["tid"] in ("MTE2", "VECTOR")]
    spans = {
        lane: covered([(e["ts"], e["ts"] + e["dur"]) for e in mine if e["ph"] == "X" and e["tid"] == lane and e["name"] not in
                       ("cache_time", "ccu_time") and "QUE" not in e["name"]])
        for lane in ("MTE2", "VECTOR")
    }  # fmt: skip
    both = (spans["MTE2"] & spans["VECTOR"]).sum()
    ends = {"B": 0.0, "E": 0.0}
    for event in mine:
        if event["ph"] in "BE" and event["tid"] == "VECTOR" and "WAIT" in event["name"]:
            ends[event["ph"]] += event["ts"]
    return both / min(spans["MTE2"].sum(), spans["VECTOR"].sum()), ends["E"] - ends["B"]


def test_a_second_buffer(inside: Run, tuned: Path, tmp_path: Path) -> None:
    """T29, T56: copies and computation overlap, the vector unit waits less, the advice goes away, and a comparison says
    so with signs. Each tiling key is a launch with code of its own."""
    trace = tuned / "trace"
    assert inside("profile", "-o", "one", "--launches", "1", trace).returncode == 0
    done = inside("profile", "-o", "two", "--skip", "1", "--baseline", "one", "--fail-if", "cycles>-5%",
                  "--fail-if", "overlap:MTE2<=+0", trace)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (one,), (two,) = launches(tmp_path / "one"), launches(tmp_path / "two")
    advice = [[advice["rule"] for advice in launch["advice"]] for launch in (one, two)]
    assert "OUR-D1" in advice[0] and "OUR-D1" not in advice[1]
    before, after = (figures(tmp_path / name / "simulator" / "trace.json") for name in ("one", "two"))
    assert before[0] < 0.2 < 0.5 < after[0]
    assert after[1] < before[1]
    printed = [line.split() for line in done.stdout.partition(", Ascend910B1, modelled\n")[2].splitlines()]
    lines = {words[0]: words for words in printed if words}
    assert lines["cycles"][3].startswith("-") and lines["time_us"][3].startswith("-")
    assert two["cycles"] < one["cycles"]
    assert two["pipes"]["MTE2"]["overlap"] > one["pipes"]["MTE2"]["overlap"]
    assert one["traffic"] == two["traffic"]


BANKS = (
    HEAD
    + """
@asc.jit
def banks(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, times: int, x_at: asc.ConstExpr[int],
          y_at: asc.ConstExpr[int], z_at: asc.ConstExpr[int], block: asc.ConstExpr[int], repeat: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x, 4096)
    y_gm.set_global_buffer(y, 4096)
    z_gm.set_global_buffer(z, 4096)
    a = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, x_at, 4096)
    b = asc.LocalTensor(y.dtype, asc.TPosition.VECCALC, y_at, 4096)
    c = asc.LocalTensor(z.dtype, asc.TPosition.VECCALC, z_at, 4096)
    asc.data_copy(a, x_gm, 4096)
    asc.data_copy(b, y_gm, 4096)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    for _i in range(times):
        asc.add(c, a, b, 64, 64, asc.BinaryRepeatParams(1, block, 1, 8, repeat, 8))
        asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    asc.data_copy(z_gm, c, 4096)

x, y, z = (np.zeros(4096, np.float32) for _ in range(3))
for at in ((0, 0x10100, 0x20000, 1, 8), (0, 0x4000, 0x10000, 1, 8), (0, 0x10100, 0x4020, 1, 8),
           (0, 0x10100, 0x10100, 0, 1), (0, 0x10100, 0x10100, 0, 8)):
    banks[1](x, y, z, 100, *at)
"""
)
"""Adds of 4096 floats with their operands free of conflicts; two sources in one bank; a destination in a source's bank;
one block of the second source eight times, and the next one in the next repeat; the same, eight blocks on."""


def test_conflicts_of_banks(inside: Run, tmp_path: Path) -> None:
    """T57: the times that were measured, within a tenth; columns of conflicts where there are some, and only there."""
    recorded(tmp_path, BANKS)
    assert inside("profile", "-o", "out", "--format", "json,csv", "--metrics", "Default", "trace").returncode == 0
    free, reads, writes, again, apart = found = launches(tmp_path / "out")
    busy = [launch["pipes"]["VECTOR"]["busy"] for launch in found]
    ratios = [cycles / busy[0] for cycles in busy]
    for ratio, measured in zip(ratios, (1.00, 1.74, 1.57, 1.50, 1.00), strict=True):
        assert ratio == pytest.approx(measured, rel=0.1), ratios

    def conflicts(launch: dict[str, Any], name: str) -> float:
        table = launch["tables"]["ResourceConflictRatio"]
        value: float = table["rows"][0][table["columns"].index(f"aiv_vec_{name}_cflt_ratio")]
        return value

    assert conflicts(free, "total") == conflicts(apart, "total") == 0
    assert all(conflicts(launch, "total") > 0.2 for launch in (reads, writes, again))
    assert "OUR-K1" in {advice["rule"] for advice in reads["advice"]}
    assert "OUR-K1" not in {advice["rule"] for advice in free["advice"]}


CUBE = (
    HEAD
    + """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def cube(c: asc.GlobalAddress, times: int):
    left = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 128 * 128)
    right = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 128 * 128)
    out = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 128 * 128)
    for _i in range(times):
        asc.mmad(out, left, right,
                 asc.MmadParams(m=128, n=128, k=128, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))

c = np.zeros(16, np.float32)
cube[24](c, 128)
"""
)
"""On each of 24 cube cores as many multiplications as 2048 x 1024 x 128 take: nothing but the cube unit."""


def test_no_more_than_the_cube_can(inside: Run, tmp_path: Path) -> None:
    """T58, with the operands where the cube reads them: nearly all of the time is the cube's, at nearly, and never more
    than, 8192 operations in a cycle of each core (opprof.md 6.4)."""
    recorded(tmp_path, CUBE)
    assert inside("profile", "-o", "out", "--format", "json", "--metrics", "Default", "trace").returncode == 0
    (launch,) = launches(tmp_path / "out")
    operations = 24 * 128 * 2 * 128**3
    table = launch["tables"]["ArithmeticUtilization"]
    column = {name: [row[at] for row in table["rows"]] for at, name in enumerate(table["columns"])}
    assert sum(column["aic_cube_fops"]) == operations
    assert all(0.9 < ratio <= 1 for ratio in column["aic_cube_ratio"]), column["aic_cube_ratio"]
    running = launch["cycles"] - launch["overhead"]
    assert 0.85 < operations / running / (8192 * 24) <= 1
    (bar,) = (bar for bar in launch["speed_of_light"] if bar["kind"] == "rate" and "cube" in bar["name"].lower())
    assert 0 < bar["share"] <= 1
