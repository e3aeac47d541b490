"""Kernels that are recorded once and profiled for every test of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.profile import Profile
from npuscope.trace.file import read_batches
from npuscope.trace.rows import launches

ROOT = Path(__file__).resolve().parents[3]

KERNELS = '''
import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

TILE = 1024
CORES = 4
UB = asc.TPosition.VECCALC


@asc.jit
def uneven(x: asc.GlobalAddress, z: asc.GlobalAddress, tile: asc.ConstExpr[int]):
    """The last core has ten times the tiles of the others."""
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + asc.get_block_idx() * tile)
    z_gm.set_global_buffer(z + asc.get_block_idx() * tile)
    local = asc.LocalTensor(x.dtype, UB, 0, tile)
    rounds = 1 + (asc.get_block_idx() // 3) * 9
    for i in range(rounds):
        asc.data_copy(local, x_gm, tile)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.muls(local, local, 2.0, tile)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(z_gm, local, tile)
        asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
        asc.wait_flag(asc.HardEvent.MTE3_MTE2, 0)


@asc.jit
def twice(x: asc.GlobalAddress, z: asc.GlobalAddress, tile: asc.ConstExpr[int]):
    """Loads one tile two times."""
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x, tile)
    z_gm.set_global_buffer(z, tile)
    first = asc.LocalTensor(x.dtype, UB, 0, tile)
    again = asc.LocalTensor(x.dtype, UB, 65536, tile)
    asc.data_copy(first, x_gm, tile)  # first
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    asc.data_copy(again, x_gm, tile)  # again
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.add(first, first, again, tile)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(z_gm, first, tile)


@asc.jit
def banks(x: asc.GlobalAddress, z: asc.GlobalAddress, tile: asc.ConstExpr[int]):
    """Adds whose operands lie in other groups and banks, in one group, in one bank."""
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x, tile)
    one = asc.LocalTensor(x.dtype, UB, 0, tile)
    asc.data_copy(one, x_gm, tile)
    beside = asc.LocalTensor(x.dtype, UB, 16384 + 256, tile)
    below = asc.LocalTensor(x.dtype, UB, 32768, tile)
    other = asc.LocalTensor(x.dtype, UB, 65536, tile)
    same = asc.LocalTensor(x.dtype, UB, 49152 + 32, tile)
    asc.data_copy(beside, x_gm, tile)
    asc.data_copy(below, x_gm, tile)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.add(other, one, beside, tile)  # free
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.add(other, one, below, tile)  # reads meet
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.add(same, one, beside, tile)  # a write meets a read


config.set_platform(config.Backend.Model)
x = np.ones(CORES * TILE, np.float32)
z = np.zeros_like(x)
uneven[CORES, rt.current_stream()](x, z, TILE)
assert (z == 2).all()
twice[1, rt.current_stream()](x, z, TILE)
banks[1, rt.current_stream()](x, z, TILE)
'''


def recorded(script: Path, trace: Path) -> dict[str, Profile]:
    """The profile of each launch of a script by its kernel's name."""
    program = "from npuscope.cli.main import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", program, "record", "-o", str(trace), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for rows in launches(read_batches(trace)):
        chip = load_chip(rows.launch.chip)
        found[rows.launch.kernel] = Profile(time_launch(rows, chip), chip)
    return found


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Profile]:
    """Our small kernels: ``uneven``, ``twice``, ``banks``."""
    folder = tmp_path_factory.mktemp("kernels")
    script = folder / "kernels.py"
    script.write_text(KERNELS)
    return recorded(script, folder / "x.trace")


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Profile]:
    """Kernels of the examples: ``add_kernel``, ``matmul_kernel`` and ``matmul_relu_kernel`` (cube and vector)."""
    folder = tmp_path_factory.mktemp("examples")
    script = folder / "all.py"
    paths = [
        str(ROOT / "examples" / "pyasc" / f"{name}.py") for name in ("add_queues", "matmul_cube", "matmul_leaky_relu")
    ]
    script.write_text(f"import runpy\nfor path in {paths}:\n    runpy.run_path(path, run_name='__main__')\n")
    return recorded(script, folder / "x.trace")
