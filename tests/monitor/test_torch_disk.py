"""Stock PyTorch on a disk that fills while it writes its trace: half a trace is not taken for one."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from daemon_process import Daemon
from training import operators, order, running, status, stepping, wait_until, written

LEFT_BYTES = 8192


def can_mount() -> bool:
    words = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        return os.getuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        return False


def fill(place: Path) -> None:
    """Leave room for the beginning of a trace."""
    disk = os.statvfs(place)
    (place / "filler").write_bytes(bytes(disk.f_bavail * disk.f_frsize - LEFT_BYTES))


@pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")
def test_half_a_trace_is_not_reported_as_written(daemon: Daemon) -> None:
    pytest.importorskip("torch")
    place = daemon.folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "none", place], check=True)
    try:
        with running(daemon.folder) as job:
            stepping(daemon, [job.pid])
            with ThreadPoolExecutor(1) as pool:
                words = ("gputrace", "--log-file", f"{place}/x.json", "--duration-ms", "1000", "--wait", "16")
                asked = pool.submit(daemon.dyno, *words)
                wait_until(lambda: status(daemon)[job.pid]["state"] in ("delivered", "tracing"), 60)
                fill(place)
                done = asked.result()
            assert done.returncode == 1, done.stdout + done.stderr
            assert str(job.pid) in done.stderr and f"{place}/x_{job.pid}.json" in done.stderr
            assert "Traceback" not in done.stderr
            # The job is unharmed, and can be traced to where there is room.
            wait_until(lambda: status(daemon)[job.pid]["state"] == "idle", 60)
            order(daemon, f"{daemon.folder}/y.json", duration_ms=200)
            assert operators(written(daemon.folder / f"y_{job.pid}.json"))
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
