"""A script of Ascend C kernels under `npuscope monitor run --simulate`: its launches, kernels and ranges, from the
simulated device to the database."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agent.jobs import agents, monitor, shows, state
from daemon_process import Daemon
from training import REGISTER_SECONDS, running, wait_until

ADD = """
import sys, time
import asc, mstx, numpy as np
import asc.lib.runtime as rt
import asc.runtime.config as config

TILE = 256

@asc.jit
def add_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, tile: asc.ConstExpr[int]):
    x_gm, y_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor(), asc.GlobalTensor()
    start = asc.get_block_idx() * tile
    x_gm.set_global_buffer(x + start, tile)
    y_gm.set_global_buffer(y + start, tile)
    z_gm.set_global_buffer(z + start, tile)
    pipe = asc.TPipe()
    queues = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(queues[0], 1, tile * x.dtype.sizeof())
    pipe.init_buffer(queues[1], 1, tile * x.dtype.sizeof())
    pipe.init_buffer(queues[2], 1, tile * x.dtype.sizeof())
    a = queues[0].alloc_tensor(x.dtype)
    b = queues[1].alloc_tensor(y.dtype)
    asc.data_copy(a, x_gm, tile)
    asc.data_copy(b, y_gm, tile)
    queues[0].enque(a)
    queues[1].enque(b)
    a = queues[0].deque(x.dtype)
    b = queues[1].deque(y.dtype)
    c = queues[2].alloc_tensor(z.dtype)
    asc.add(c, a, b, tile)
    queues[2].enque(c)
    c = queues[2].deque(z.dtype)
    asc.data_copy(z_gm, c, tile)
    queues[0].free_tensor(a)
    queues[1].free_tensor(b)
    queues[2].free_tensor(c)

config.set_platform(config.Backend.Model)
x = np.ones(2 * TILE, np.float32)
z = np.zeros_like(x)
end = time.time() + 240
step = 0
while time.time() < end:
    number = mstx.range_start(f"step {step}", 0)
    add_kernel[2, rt.current_stream()](x, x, z, TILE)
    mstx.range_end(number)
    assert (z == 2).all()
    step += 1
    time.sleep(0.02)
"""
KERNELS = """
SELECT name.value, type.value, TASK.startNs, TASK.endNs, TASK.deviceId, TASK.connectionId FROM COMPUTE_TASK_INFO
JOIN TASK ON TASK.globalTaskId = COMPUTE_TASK_INFO.globalTaskId
JOIN STRING_IDS AS name ON name.id = COMPUTE_TASK_INFO.name JOIN STRING_IDS AS type ON type.id = TASK.taskType
"""
CALLS = """
SELECT value, startNs, endNs, connectionId FROM CANN_API JOIN STRING_IDS ON STRING_IDS.id = CANN_API.name
WHERE type = 5000
"""
RANGES = "SELECT value, startNs, endNs FROM MSTX_EVENTS JOIN STRING_IDS ON STRING_IDS.id = message WHERE eventType = 2"


def test_from_the_simulated_device_to_the_database(
    start: Callable[..., Daemon], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel follows its own launch, on one stream one after the other, inside the host's range of its step;
    the file lives where `dyno` said."""
    pytest.importorskip("asc")
    (folder / "job.py").write_text(ADD)
    monkeypatch.setenv("NPUSCOPE_IPC_DIR", str(folder))
    daemon, environment = start("--ipc", "home"), agents(folder)
    words = [sys.executable, "-m", "npuscope", "monitor", "run", "--simulate", str(folder / "job.py")]
    (folder / "own_parts.py").unlink()  # real sources, real processors
    with running(folder, words, environment, unharmed=False) as job:
        wait_until(lambda: job.pid in state(daemon), REGISTER_SECONDS, "not registered")
        flags = ["--mspti-activity-kind", "Marker,Kernel,RuntimeAPI", "--log-file", str(folder / "out")]
        monitor(daemon, "--npu-monitor-start", "--report-interval-s", "1", *flags)
        shows(daemon, job.pid, monitor="Running")
        wait_until(lambda: kernels(folder) >= 5, 120.0, "no kernels in the database")
        monitor(daemon, "--npu-monitor-stop")
        shows(daemon, job.pid, monitor="Idle")
        (path,) = (folder / "out").glob("msmonitor_*.db")
        database = sqlite3.connect(path)
        found = sorted(database.execute(KERNELS), key=lambda kernel: kernel[2])
        calls = {connection: (name, first, last) for name, first, last, connection in database.execute(CALLS)}
        ranges = list(database.execute(RANGES))
    kernels_only = [kernel for kernel in found if kernel[1] != "MsTx"]
    assert {kernel[:2] for kernel in kernels_only} == {("add_kernel", "KERNEL_AIVEC")}
    assert {call[0] for call in calls.values()} == {"KernelLaunch"}
    for _, _, first, last, device, connection in kernels_only:
        assert device == 0 and calls[connection][2] <= first and 2500 < last - first < 100_000
    assert all(one[3] <= other[2] for one, other in zip(kernels_only, kernels_only[1:], strict=False))
    steps = [text for text, _, _ in ranges]
    assert all(text.startswith("step ") for text in steps) and len(set(steps)) == len(steps) >= 5
    inside = [sum(first <= call[1] and call[2] <= last for call in calls.values()) for _, first, last in ranges]
    assert set(inside) <= {0, 1} and sum(inside) >= 4


def kernels(folder: Path) -> int:
    """Kernels that a reader finds in the database so far."""
    for path in (folder / "out").glob("msmonitor_*.db"):
        try:
            return int(sqlite3.connect(path).execute("SELECT count(*) FROM COMPUTE_TASK_INFO").fetchone()[0])
        except sqlite3.OperationalError:  # not there yet
            return 0
    return 0


def test_a_chip_that_is_none(folder: Path) -> None:
    """One line and exit code 2."""
    from daemon_process import python

    (folder / "job.py").write_text("")
    done = python(["npuscope", "monitor", "run", "--chip", "Ascend1", str(folder / "job.py")], agents(folder))
    assert done.returncode == 2 and "Ascend1" in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""
